#pragma once

#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/holdings/ledger.h"
#include "agent/holdings/numbering.h"

namespace neuron::holdings {

// What the kubelet's storage or PodResources shows of one container and resource.
struct ShownHolding {
  std::string resource_name;
  std::vector<std::string> ids;
  std::string holder;      // "namespace/pod/container", or "pod <uid>/<container>" from the checkpoint
  std::string shown_as{};  // of the latter: "namespace/pod/container" where it is known; else ""
};

// What the kubelet shows of who holds what, from its two sources; see Ledger::Shown.
struct ShownHoldings {
  std::vector<ShownHolding> listed;
  SteadyTime asked_at{};
  std::vector<ShownHolding> stored;
  CheckpointVersion stored_version = 0;
  NumberingEvidence numbering{};  // only when wants_numbering() said so
};

}  // namespace neuron::holdings
