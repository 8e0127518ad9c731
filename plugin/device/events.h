#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/model/allocation.h"
#include "agent/model/resource.h"

namespace neuron::plugin {

// Events from other threads for the main thread.
struct SnapshotChanged {};
struct StreamEnded {  // the kubelet, not the agent, ended a ListAndWatch
  model::Resource resource{};
};
struct RegisterDone {
  model::Resource resource{};
  std::string endpoint;
  std::optional<Error> error;
};
struct StreamOpened {};        // the kubelet watches a resource now
struct AdmissionsChanged {};   // AdmissionGate::next() may be sooner than it was
struct CheckpointCameBack {};  // a read of it that hung has ended
struct HoldersListed {
  SteadyTime asked_at;
  Result<std::vector<model::Allocation>> answer;
};
struct AllocatableListed {
  SteadyTime asked_at;
  Result<model::Allocatable> answer;
};
struct CdiMountDead {};  // the CDI directory was removed on the host, and the mount here keeps the old one
using Event = std::variant<SnapshotChanged, StreamEnded, StreamOpened, RegisterDone, AdmissionsChanged,
                           CheckpointCameBack, HoldersListed, AllocatableListed, CdiMountDead>;

}  // namespace neuron::plugin
