#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"

// A ResourceClaim as far as a driver needs it, whose allocation is the same in v1, v1beta2 and v1beta1. Foreign text:
// names are bounded here, but nothing is looked up. Pure.
namespace neuron::plugin::dra {

// Tolerates a taint when every field that is not "" agrees; see tolerates().
struct Toleration {
  std::string key;      // "" with `exists` = every taint
  bool exists = false;  // operator Exists: the value does not matter; else Equal
  std::string value;
  std::string effect;  // "" = every one
  friend bool operator==(const Toleration&, const Toleration&) = default;
};

[[nodiscard]] bool tolerates(const std::vector<Toleration>& tolerations, std::string_view key, std::string_view value,
                             std::string_view effect);

// One allocated device, status.allocation.devices.results[].
struct ClaimResult {
  std::string request;     // base name: "chips" of "chips/first"
  std::string subrequest;  // "first"; "" = the request has no alternatives
  std::string pool;
  std::string device;
  bool admin_access = false;
  std::vector<Toleration> tolerations;  // of the result, and of its request, as servers before 1.35 do not copy them
  std::optional<std::string> share_id{};

  [[nodiscard]] std::string full_request() const { return subrequest.empty() ? request : request + "/" + subrequest; }
};

// status.allocation.devices.config[] of our driver.
struct OpaqueConfig {
  bool from_class = false;            // source FromClass: the claim's own takes precedence
  std::vector<std::string> requests;  // full or base names; empty = all
  std::string parameters;             // JSON text
};

struct PodRef {
  std::string name;
  std::string uid;
  friend bool operator==(const PodRef&, const PodRef&) = default;
};

struct Claim {
  std::string claim_namespace;
  std::string name;
  std::string uid;
  std::string resource_version;
  bool is_allocated = false;
  std::vector<ClaimResult> results;   // of our driver only, in the API's order
  std::vector<OpaqueConfig> configs;  // of our driver only: classes first, then the claim, each in the API's order
  std::vector<PodRef> pods;           // status.reservedFor, as far as they are pods of the claim's namespace
  // The rest of status.reservedFor, "podgroups/train": any of their pods may use the claim, and it does not say which
  // (docs/reference/dra.md#claims).
  std::vector<std::string> other_consumers{};
};

// Errors: data_corrupt when the text is no claim, or has more than the API allows: 32 results, 32 configurations, 256
// consumers, each four times.
[[nodiscard]] Result<Claim> parse_claim(std::string_view text, std::string_view driver);

}  // namespace neuron::plugin::dra
