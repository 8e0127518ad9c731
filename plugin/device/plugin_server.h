#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "agent/base/result.h"
#include "plugin/device/device_plugin_service.h"
#include "plugin/device/kubelet_port.h"
#include "plugin/device/watch_hub.h"

namespace neuron::plugin {

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
