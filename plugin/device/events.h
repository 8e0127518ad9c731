#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/model/allocation.h"
#include "agent/model/resource.h"
#include "agent/rpc/allocatable.h"

namespace neuron::plugin {

// What other threads tell the main thread.
struct SnapshotChanged {};
struct StreamEnded {  // the kubelet ended a ListAndWatch that we did not end
  model::Resource resource{};
};
struct RegisterDone {
  model::Resource resource{};
  std::string endpoint;
  std::optional<Error> error;
};
struct StreamOpened {};       // the kubelet watches a resource now
struct AdmissionsChanged {};  // AdmissionGate::next() may be sooner than it was
struct HoldersListed {
  SteadyTime asked_at;
  Result<std::vector<model::Allocation>> answer;
};
struct AllocatableListed {
  SteadyTime asked_at;
  Result<rpc::Allocatable> answer;
};
using Event = std::variant<SnapshotChanged, StreamEnded, StreamOpened, RegisterDone, AdmissionsChanged, HoldersListed,
                           AllocatableListed>;

}  // namespace neuron::plugin
