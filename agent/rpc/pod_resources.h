#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/allocation.h"
#include "agent/rpc/allocatable.h"
#include "agent/rpc/call_keeper.h"

namespace neuron::rpc {

// Asks the kubelet's PodResources service who holds what, and what there is. List makes the kubelet's device manager
// forget the devices of ended pods, and races with an allocation in flight
// (docs/reference/kubelet.md#double-allocation): never call it from an RPC handler or while one runs, and rarely. One
// thread.
class PodResourcesClient {
 public:
  // Of all resources. A pod that holds nothing is one entry without container, resource and ids.
  using Done = std::function<void(Result<std::vector<model::Allocation>>)>;  // once, on a gRPC thread
  using AllocatableDone = std::function<void(Result<Allocatable>)>;          // once, on a gRPC thread

  // `socket`: path of the kubelet's socket, "/var/lib/kubelet/pod-resources/kubelet.sock". Nothing is opened yet.
  explicit PodResourcesClient(std::string socket);

  // Starts one List; a new connection each time, which close_finished() or the next call closes. Never blocks. Errors:
  // unavailable (no process listens), deadline_exceeded, data_corrupt (more than 16 MiB, or names that are no names).
  void list(std::chrono::milliseconds deadline, Done done);

  // The same for GetAllocatableResources, which changes nothing in the kubelet and may be asked at any time.
  void allocatable(std::chrono::milliseconds deadline, AllocatableDone done);

  // The same, waited for: they block until the answer is there, for as long as `deadline`.
  [[nodiscard]] Result<std::vector<model::Allocation>> list(std::chrono::milliseconds deadline);
  [[nodiscard]] Result<Allocatable> allocatable(std::chrono::milliseconds deadline);

  // Closes the connections of calls that are done. Else they stay, and connect again whenever the kubelet restarts.
  void close_finished() { calls_.drop_finished(); }

 private:
  std::string socket_;
  CallKeeper calls_;
};

}  // namespace neuron::rpc
