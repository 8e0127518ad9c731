#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <string>

#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "podresources/v1/api.grpc.pb.h"
#include "tools/neuron-sim/kubelet/device_manager.h"
#include "tools/neuron-sim/kubelet/options.h"

namespace neuron::sim {

// PodResources v1 on pod-resources/kubelet.sock without Get: pkg/kubelet/apis/podresources/server_v1.go. One object per
// life of the kubelet. Thread-safe.
class PodResourcesServer final : public v1::PodResourcesLister::Service {
 public:
  // `manager` outlives this. `dir` is pod-resources.
  PodResourcesServer(DeviceManager& manager, const KubeletOptions& options, std::string dir);
  ~PodResourcesServer() override;

  [[nodiscard]] Result<void> start();  // errors: from errno, unavailable (cannot listen)
  void stop();                         // idempotent

  // Takes effect for the next call; going to or from `garbage` binds the socket anew.
  [[nodiscard]] Result<void> set_fault(PodResourcesFault fault);

  [[nodiscard]] int list_calls() const { return list_calls_; }  // of List, refused ones included

  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest* request,
                    v1::ListPodResourcesResponse* answer) override;
  grpc::Status GetAllocatableResources(grpc::ServerContext* context, const v1::AllocatableResourcesRequest* request,
                                       v1::AllocatableResourcesResponse* answer) override;

 private:
  [[nodiscard]] Result<void> listen();
  void close_socket();
  // The fault to act on, after hanging if that is the fault; a status other than OK is the answer.
  [[nodiscard]] grpc::Status admit_call(PodResourcesFault& fault);

  DeviceManager& manager_;
  const std::string dir_;
  std::atomic<int> list_calls_ = 0;
  std::unique_ptr<grpc::Service> garbage_;  // serves instead of this under PodResourcesFault::garbage
  std::unique_ptr<grpc::Server> server_;    // start(), set_fault() and stop() only; after what it serves

  Mutex mutex_;
  std::condition_variable_any released_;  // with mutex_
  PodResourcesFault fault_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace neuron::sim
