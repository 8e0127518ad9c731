#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "agent/model/resource.h"
#include "deviceplugin/v1beta1/api.grpc.pb.h"
#include "plugin/device/allocation_desk.h"
#include "plugin/device/watch_hub.h"

namespace neuron::plugin {

// The kubelet's DevicePlugin service for one resource: converts, asks the desk or the hub, converts back. All handlers
// answer at once on gRPC's threads, except PreStartContainer and, while a list of ours is on its way, Allocate
// (ListGate); these wait without holding a thread.
class DevicePluginService final : public v1beta1::DevicePlugin::CallbackService {
 public:
  enum class StreamEnd { by_us, by_peer };
  struct Hooks {
    std::function<void(model::Resource, StreamEnd)> on_stream_end;  // any thread, must not block
    std::function<void()> on_list_sent;  // before a ListAndWatch message leaves; must not block
    // ListGate::hold: true when the function is kept, to be called once later.
    std::function<bool(model::Resource, std::function<void()>)> hold_allocate;
    // ListGate::hold_for_next, and a list is sent: for an Allocate in doubt (AllocationDesk::doubtful).
    std::function<void(model::Resource, std::function<void()>)> hold_for_checkpoint;
    std::function<void(model::Resource)> release_allocate;  // every Allocate of the resource that is held goes now
    std::function<void(model::Resource)> on_allocate;       // after an Allocate that succeeded
    // Calls back once, when nobody uses the units' silicon any more or the wait is over; nullopt Error = ready.
    std::function<void(model::Resource, std::vector<std::string>, std::function<void(std::optional<Error>)>)> pre_start;
    std::function<void(model::Resource)> cancel_pre_start;  // every such wait of the resource ends now
  };

  // `desk` and `hub` must outlive the service; `hooks` are called until the server is shut down.
  DevicePluginService(model::Resource resource, AllocationDesk& desk, WatchHub& hub, const Hooks& hooks);

  // Ends every call that waits, now and later: one that is never finished would hold up the server's shutdown.
  void close() EXCLUDES(closing_mutex_);

  grpc::ServerUnaryReactor* GetDevicePluginOptions(grpc::CallbackServerContext* context, const v1beta1::Empty* request,
                                                   v1beta1::DevicePluginOptions* response) override;
  grpc::ServerWriteReactor<v1beta1::ListAndWatchResponse>* ListAndWatch(grpc::CallbackServerContext* context,
                                                                        const v1beta1::Empty* request) override;
  grpc::ServerUnaryReactor* GetPreferredAllocation(grpc::CallbackServerContext* context,
                                                   const v1beta1::PreferredAllocationRequest* request,
                                                   v1beta1::PreferredAllocationResponse* response) override;
  grpc::ServerUnaryReactor* Allocate(grpc::CallbackServerContext* context, const v1beta1::AllocateRequest* request,
                                     v1beta1::AllocateResponse* response) override;
  grpc::ServerUnaryReactor* PreStartContainer(grpc::CallbackServerContext* context,
                                              const v1beta1::PreStartContainerRequest* request,
                                              v1beta1::PreStartContainerResponse* response) override;

 private:
  [[nodiscard]] bool in_doubt(const v1beta1::AllocateRequest& request);
  [[nodiscard]] grpc::Status allocate(const v1beta1::AllocateRequest& request, v1beta1::AllocateResponse& response);

  const model::Resource resource_;
  AllocationDesk& desk_;
  WatchHub& hub_;
  const Hooks& hooks_;
  Mutex closing_mutex_;  // held while a wait begins, so that close() misses none
  bool closing_ GUARDED_BY(closing_mutex_) = false;
};

}  // namespace neuron::plugin
