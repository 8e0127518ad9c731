#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "deviceplugin/v1beta1/api.grpc.pb.h"
#include "tools/neuron-sim/kubelet/device_manager.h"
#include "tools/neuron-sim/kubelet/options.h"
#include "tools/neuron-sim/kubelet/plugin_client.h"
#include "tools/neuron-sim/kubelet/socket_dir.h"

namespace neuron::sim {

// The kubelet's side of registration: pkg/kubelet/cm/devicemanager/plugin/v1beta1/{server,handler}.go. One object per
// life of the kubelet. Thread-safe.
class PluginServer final : public v1beta1::Registration::Service {
 public:
  // `manager` outlives this. `socket_dir` is device-plugins.
  PluginServer(DeviceManager& manager, KubeletOptions options, std::string socket_dir);
  ~PluginServer() override;

  // Wipes the directory's sockets and serves kubelet.sock there. Errors: from errno, unavailable (cannot listen).
  [[nodiscard]] Result<void> start();
  // Ends every stream without telling the manager, closes the server, joins all threads. Idempotent.
  void stop();

  // Takes effect for the next call; going to or from `closes` binds kubelet.sock anew.
  [[nodiscard]] Result<void> set_fault(RegisterFault fault);

  // Successful registrations of the resource in this life.
  [[nodiscard]] int registrations(const std::string& resource);
  // Ends the kubelet's client of this resource, as a fault of the transport would. False when there is none.
  bool drop_client(const std::string& resource);

  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* answer) override;

 private:
  struct Stream {
    std::shared_ptr<PluginClient> client;
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> ended;
  };

  Result<void> listen();
  void close_socket();
  Result<void> accept(const grpc::ServerContext& context, const v1beta1::RegisterRequest& request);
  Result<void> connect(const grpc::ServerContext& context, const std::string& resource, const std::string& path);
  void run(const std::shared_ptr<PluginClient>& client);
  void watch_in_background(const std::shared_ptr<PluginClient>& client) EXCLUDES(mutex_);

  DeviceManager& manager_;
  const KubeletOptions options_;
  const std::string socket_dir_;
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<grpc::Server> server_;    // start(), set_fault() and stop() only
  std::unique_ptr<ClosingSocket> closing_;  // instead of server_ under RegisterFault::closes

  Mutex mutex_;
  std::condition_variable_any released_;  // with mutex_: fault_ or stopping_ changed
  RegisterFault fault_ GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<PluginClient>> clients_ GUARDED_BY(mutex_);  // by resource name
  std::map<std::string, int> registrations_ GUARDED_BY(mutex_);
  std::vector<Stream> streams_ GUARDED_BY(mutex_);
};

}  // namespace neuron::sim
