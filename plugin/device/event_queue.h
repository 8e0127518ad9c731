#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/model/resource.h"
#include "agent/rpc/pod_resources.h"

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
struct AdmissionsChanged {};  // AdmissionGate, whose timer the loop keeps
struct HoldersListed {
  SteadyTime asked_at;
  Result<std::vector<rpc::PodDevices>> answer;
};
struct AllocatableListed {
  SteadyTime asked_at;
  Result<rpc::Allocatable> answer;
};
using Event = std::variant<SnapshotChanged, StreamEnded, StreamOpened, RegisterDone, AdmissionsChanged, HoldersListed,
                           AllocatableListed>;

// From any thread to the main thread's poll loop.
class EventQueue {
 public:
  [[nodiscard]] static Result<std::unique_ptr<EventQueue>> open();

  void post(Event event) EXCLUDES(mutex_);                   // any thread, never blocks
  [[nodiscard]] std::vector<Event> take() EXCLUDES(mutex_);  // main thread: everything so far, in order
  [[nodiscard]] int fd() const { return wake_.get(); }       // readable while events wait

 private:
  explicit EventQueue(Fd wake) : wake_(std::move(wake)) {}
  Fd wake_;
  Mutex mutex_;
  std::vector<Event> events_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin
