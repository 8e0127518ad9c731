#pragma once

#include <vector>

#include "agent/base/clock.h"
#include "agent/core/logical_cores.h"
#include "agent/holdings/ledger.h"
#include "agent/model/allocation.h"

namespace neuron::holdings {

// Allocations as the kubelet shows them, from its two sources; see Ledger::Shown.
struct ShownAllocations {
  std::vector<model::Allocation> listed;
  SteadyTime asked_at{};
  std::vector<model::Allocation> stored;
  CheckpointVersion stored_version = 0;
  core::NumberingEvidence numbering{};          // of the same checkpoint, all of it
  std::vector<model::Allocation> claims{};      // by PodResources, as of its last answer: no checkpoint has them
  SteadyTime stored_since = SteadyTime::max();  // when that checkpoint was first read
};

}  // namespace neuron::holdings
