#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/allocation.h"
#include "agent/rpc/calls.h"
#include "podresources/v1/api.pb.h"

namespace neuron::rpc {

// Client of the kubelet's PodResources service: allocations and allocatable devices. List makes the kubelet's device
// manager forget the devices of ended pods, and races with an allocation in flight
// (docs/reference/kubelet.md#double-allocation): never call it from an RPC handler or while one runs, and rarely. One
// thread.
class PodResourcesClient {
 public:
  // Receives the allocations of all resources. A pod that holds nothing is one entry without container, resource and
  // ids.
  using Done = std::function<void(Result<std::vector<model::Allocation>>)>;  // once, on a gRPC thread
  using AllocatableDone = std::function<void(Result<model::Allocatable>)>;   // once, on a gRPC thread

  // `socket`: path of the kubelet's socket, "/var/lib/kubelet/pod-resources/kubelet.sock". Nothing is opened yet.
  explicit PodResourcesClient(std::string socket);

  // Starts one List; a new connection each time, which close_finished() or the next call closes. Never blocks. Errors:
  // unavailable (no process listens), deadline_exceeded, data_corrupt (not a message of this protocol), internal (more
  // than 16 MiB).
  void list(std::chrono::milliseconds deadline, Done done);

  // Starts one GetAllocatableResources as list() does; it changes nothing in the kubelet and may be called at any time.
  void allocatable(std::chrono::milliseconds deadline, AllocatableDone done);

  // Block until the answer or the deadline.
  [[nodiscard]] Result<std::vector<model::Allocation>> list(std::chrono::milliseconds deadline);
  [[nodiscard]] Result<model::Allocatable> allocatable(std::chrono::milliseconds deadline);

  // Closes the connections of finished calls. Otherwise they stay, and reconnect whenever the kubelet restarts.
  void close_finished() { calls_.drop_finished(); }

 private:
  std::string socket_;
  CallKeeper calls_;
};

// PodResources messages as plain structs. Names are foreign: made printable, cut after kMaxNameBytes. Pure.
inline constexpr std::size_t kMaxNameBytes = 512;  // Kubernetes' own longest is 253

// One entry per container and resource, then one per container, claim and driver, and one more for devices of a claim
// for admin access; containers in the order of the answer. A pod that has neither is one entry without container,
// resource and ids.
[[nodiscard]] std::vector<model::Allocation> devices_in(const v1::ListPodResourcesResponse& response);
[[nodiscard]] model::Allocatable allocatable_in(const v1::AllocatableResourcesResponse& response);

}  // namespace neuron::rpc
