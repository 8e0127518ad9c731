#pragma once

#include <string>
#include <vector>

#include "agent/grant/node_units.h"
#include "plugin/dra/claim/claim_store.h"
#include "plugin/dra/claim/hardware.h"
#include "plugin/kubelet/memory_gate.h"

// The cores of a claim, for the memory gate.
namespace neuron::plugin::dra {

// All cores of the hardware, whose leftover memory has to go before another container gets them. Pure.
[[nodiscard]] std::vector<MemoryGate::Core> cores_of(const grant::NodeUnits& node, const Hardware& hardware);

// Whether some claim holds one of `cores`: MemoryGate::Core::maybe_of of those above.
[[nodiscard]] bool are_held(const ClaimStore& store, const std::vector<int>& cores);

// The processes on a core as text; "" when none is known. `node` may be null. Pure.
[[nodiscard]] std::string owners_of(const grant::NodeUnitsPtr& node, int index, int physical_core);

}  // namespace neuron::plugin::dra
