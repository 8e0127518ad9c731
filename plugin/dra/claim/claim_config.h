#pragma once

#include <optional>
#include <string>
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

}  // namespace neuron::plugin::dra
