#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/claim/claim_request.h"

// The opaque configuration of claims: decoded for Prepare, and checked before there is an allocation.
namespace neuron::plugin::dra {

// Why Prepare refuses a configuration. Foreign text in it is printable.
struct ConfigRefusal {
  std::string problem;
  std::string fix;  // "" = the problem says all
  friend bool operator==(const ConfigRefusal&, const ConfigRefusal&) = default;
};

// Why one entry is refused, whatever request it is for; nullopt: it is accepted.
[[nodiscard]] std::optional<ConfigRefusal> refusal_of(const OpaqueConfig& config);

// The opaque configuration that claims and classes attach to the driver's devices
// (docs/reference/dra.md#opaque-configuration). It is not checked before Prepare, so it is decoded strictly. All of
// `configs`, one of which each kind may be for a request: those of classes first, and the later one wins. An entry
// without requests is for all, "chips" is for "chips" and all of its alternatives "chips/first", "chips/first" for that
// one alone. `request` is the full name of a result's request. Errors: invalid_argument, naming the field and what it
// takes, of any entry, also of one for other requests.
[[nodiscard]] Result<RequestConfig> config_for(const std::vector<OpaqueConfig>& configs, const std::string& request);

// The refusal of a request for 0 cores, which the scheduler serves, but for admin access. Pure.
[[nodiscard]] ConfigRefusal no_cores(const std::string& request);

// Configurations that Prepare would refuse, and requests for no cores. What depends on the node, the other requests
// of a container or the allocation is not known here.
struct ConfigFault {
  enum class Kind {
    refused,       // Prepare refuses it, whatever request a configuration is for
    other_driver,  // ignored: for another driver, though its parameters are valid for this one
  };
  Kind kind = Kind::refused;
  std::string object;   // "ResourceClaimTemplate default/neurons"
  std::string path;     // "spec.spec.devices.config[1].opaque.parameters"
  std::string value;    // its JSON, printable
  std::string problem;  // of Prepare
  std::string fix;
};

struct CheckedClaims {
  std::size_t objects = 0;  // ResourceClaims, ResourceClaimTemplates and DeviceClasses
  std::size_t configs = 0;  // entries of config[] for the driver
  std::vector<ConfigFault> faults;
};

// `text`: one or more JSON objects one after another, lists of them too, as kubectl prints them. Objects of other kinds
// are skipped. Errors: invalid_argument when the text is no JSON, as YAML is none; data_corrupt when an object is
// nested more than 64 deep. Pure.
[[nodiscard]] Result<CheckedClaims> check_claims(std::string_view text, const std::string& driver);

}  // namespace neuron::plugin::dra
