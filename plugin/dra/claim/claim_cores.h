#pragma once

#include <string>
#include <vector>

#include "agent/grant/node_units.h"
#include "plugin/dra/claim/claim_store.h"
#include "plugin/dra/claim/hardware.h"
#include "plugin/kubelet/memory_gate.h"

// What a claim holds, as the memory gate waits for it.
namespace neuron::plugin::dra {

// All cores of the hardware, whose leftovers have to go before somebody else gets them. Pure.
[[nodiscard]] std::vector<MemoryGate::Core> cores_of(const grant::NodeUnits& node, const Hardware& hardware);

// Whether some claim holds one of `cores`: MemoryGate::Core::maybe_of of those above.
[[nodiscard]] bool are_held(const ClaimStore& store, const std::vector<int>& cores);

// The processes on a core, for people; "" when none is known. `node` may be null. Pure.
[[nodiscard]] std::string owners_of(const grant::NodeUnitsPtr& node, int index, int physical_core);

}  // namespace neuron::plugin::dra
