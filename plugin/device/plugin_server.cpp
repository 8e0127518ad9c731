#include "plugin/device/plugin_server.h"

#include <sys/un.h>

#include <chrono>

namespace neuron::plugin {

PluginServer::PluginServer(model::Resource resource, std::string endpoint, const DevicePluginService::Parts& parts)
    : resource_(resource), endpoint_(std::move(endpoint)), service_(resource, parts, hub_) {}

Result<std::unique_ptr<PluginServer>> PluginServer::start(model::Resource resource, const std::string& directory,
                                                          const std::string& endpoint,
                                                          const DevicePluginService::Parts& parts) {
  const std::string path = directory + "/" + endpoint;
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return fail(ErrorCode::invalid_argument, path + ": too long for a unix socket (at most " +
                                                 std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes)");
  }
  std::unique_ptr<PluginServer> plugin(new PluginServer(resource, endpoint, parts));
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&plugin->service_);
  plugin->server_ = builder.BuildAndStart();
  if (!plugin->server_) {
    // Without the socket's name, which differs each time: equal lines are logged once.
    return fail(
        ErrorCode::unavailable,
        directory +
            ": cannot create a socket there; check that the directory is writable and its file system has free inodes");
  }
  return plugin;
}

void PluginServer::close() {
  hub_.close();
  service_.close();
}

PluginServer::~PluginServer() {
  constexpr std::chrono::milliseconds kStopTimeout{400};  // all own calls have ended by then; peers may be stuck
  close();
  if (server_) {
    server_->Shutdown(std::chrono::system_clock::now() + kStopTimeout);
    server_->Wait();
  }
}

}  // namespace neuron::plugin
