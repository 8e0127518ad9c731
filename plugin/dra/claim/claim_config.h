#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/claim/claim.h"

// The opaque configuration that claims and classes attach to the driver's devices
// (docs/reference/dra.md#opaque-configuration). It is not checked before Prepare, so it is decoded strictly: an unknown
// part is an error that names the valid ones. Pure.
namespace neuron::plugin::dra {

// Configuration of one request.
struct RequestConfig {
  std::optional<int> lnc;               // NeuronConfig logicalNeuronCore: 1 or 2
  std::optional<int> ultraserver_mode;  // UltraServerConfig ultraserverMode: nodes that work as one, 1, 2 or 4
  friend bool operator==(const RequestConfig&, const RequestConfig&) = default;
};

// All of `configs`, one of which each kind may be for a request: those of classes first, and the later one wins. An
// entry without requests is for all, "chips" is for "chips" and all of its alternatives "chips/first", "chips/first"
// for that one alone. `request` is the full name of a result's request.
// Errors: invalid_argument, naming the field and what it takes, of any entry, also of one for other requests.
[[nodiscard]] Result<RequestConfig> config_for(const std::vector<OpaqueConfig>& configs, const std::string& request);

}  // namespace neuron::plugin::dra
