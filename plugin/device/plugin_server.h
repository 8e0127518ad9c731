#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "agent/model/resource.h"
#include "deviceplugin/v1beta1/api.grpc.pb.h"
#include "plugin/device/admission_gate.h"
#include "plugin/device/allocations.h"
#include "plugin/device/kubelet_port.h"
#include "plugin/device/pre_start_gate.h"
#include "plugin/kubelet/call_figures.h"
#include "plugin/placement/placement_book.h"

namespace neuron::plugin {

// The kubelet's DevicePlugin service for one resource: converts, asks the allocations or the hub, converts back. All
// handlers answer at once on gRPC's threads, except PreStartContainer and what AdmissionGate or PlacementBook keeps
// waiting; these wait without holding a thread.
class DevicePluginService final : public v1beta1::DevicePlugin::CallbackService {
 public:
  // Shared by all resources of a process. All must outlive the service's server.
  struct Parts {
    Allocations& allocations;
    AdmissionGate& admissions;
    PreStartGate& pre_start;
    EventQueue& events;                   // StreamEnded
    CallFigures* figures = nullptr;       // nullptr: not counted
    PlacementBook* placements = nullptr;  // nullptr: placements by others are not honored
  };

  DevicePluginService(model::Resource resource, const Parts& parts, WatchHub& hub);

  // All names that the services of a process may count by, where `offer` says which resources there are.
  [[nodiscard]] static CallFigures::Names counted_names(const core::OfferPolicy& offer);

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
  void prefer(const v1beta1::PreferredAllocationRequest& request, v1beta1::PreferredAllocationResponse& response);
  [[nodiscard]] std::vector<std::string> preferred(const v1beta1::ContainerPreferredAllocationRequest& container);
  enum class Wait { first, second };
  // When the list for it may be sent; nullopt: it needs none.
  [[nodiscard]] std::optional<SteadyTime> needs_checkpoint(const v1beta1::AllocateRequest& request, Wait wait);
  void wait_for_checkpoint(SteadyTime earliest, AdmissionGate::Continuation then);
  [[nodiscard]] grpc::Status refused(const refusals::Refusal& refusal) const;  // logs and counts it
  [[nodiscard]] grpc::Status allocate(const v1beta1::AllocateRequest& request, v1beta1::AllocateResponse& response);

  void answer(const v1beta1::AllocateRequest& request, v1beta1::AllocateResponse& response,
              grpc::ServerUnaryReactor* reactor, SteadyTime asked_at);
  void count(std::string_view method, SteadyTime asked_at, bool answered) const;
  [[nodiscard]] bool closing() EXCLUDES(closing_mutex_);

  const model::Resource resource_;
  const Parts parts_;
  WatchHub& hub_;
  Mutex closing_mutex_;  // PreStartContainer's wait begins under it; the others check closing_ once theirs has begun
  bool closing_ GUARDED_BY(closing_mutex_) = false;
};

// One resource served on one unix socket. The socket name is never used twice, because gRPC unlinks the path when it
// binds and again when it shuts down, even if another process owns it by then. Not synchronised: one owner thread.
class PluginServer final : public ResourceServer {
 public:
  // Binds and serves; when it returns, the kubelet can dial. Errors: unavailable (cannot bind), invalid_argument (the
  // path is longer than a unix socket allows). All `parts` must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<PluginServer>> start(model::Resource resource,
                                                                   const std::string& directory,
                                                                   const std::string& endpoint,
                                                                   const DevicePluginService::Parts& parts);
  ~PluginServer() override;  // close(), then the server; returns within half a second
  PluginServer(const PluginServer&) = delete;
  PluginServer& operator=(const PluginServer&) = delete;

  [[nodiscard]] model::Resource resource() const { return resource_; }
  [[nodiscard]] const std::string& endpoint() const override { return endpoint_; }  // file name within the directory
  [[nodiscard]] std::size_t watchers() const override { return hub_.watchers(); }
  void end_streams() override { hub_.stop_watchers(); }  // those that are open now; the kubelet may open another
  void close() override;                                 // ends every stream and every wait, now and later; idempotent
  void publish(UnitListPtr units) override { hub_.publish(std::move(units)); }

 private:
  PluginServer(model::Resource resource, std::string endpoint, const DevicePluginService::Parts& parts);

  const model::Resource resource_;
  const std::string endpoint_;
  WatchHub hub_;
  DevicePluginService service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace neuron::plugin
