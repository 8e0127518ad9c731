#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "deviceplugin/v1beta1/api.grpc.pb.h"
#include "podresources/v1/api.grpc.pb.h"
#include "tools/neuron-sim/kubelet/device_manager.h"
#include "tools/neuron-sim/kubelet/plugin_client.h"
#include "tools/neuron-sim/kubelet/pod.h"

// The kubelet stand-in: its two gRPC servers, the directories of their sockets, and the process around them.
namespace neuron::sim {

// mkdir -p, mode 0750 for new directories. Errors: from errno.
[[nodiscard]] Result<void> make_directory(const std::string& path);

// Deletes every socket directly in `dir` and no other file, as the kubelet does when it starts. Errors: from errno.
[[nodiscard]] Result<void> wipe_sockets(const std::string& dir);

// Whether a server listens on this unix socket. False for a stale or missing one.
[[nodiscard]] bool is_listening(const std::string& socket_path);

// invalid_argument when the path does not fit a unix socket address (107 bytes).
[[nodiscard]] Result<void> check_socket_path(const std::string& path);

// A gRPC server on one unix socket. Its calls take turns.
class SocketServer {
 public:
  // Errors: invalid_argument (too long a path), unavailable (cannot listen).
  [[nodiscard]] Result<void> listen(const std::string& path, grpc::Service& service);
  void close();  // idempotent

 private:
  std::unique_ptr<grpc::Server> server_;
};

// Registration: pkg/kubelet/cm/devicemanager/plugin/v1beta1/{server,handler}.go. One object per life of the kubelet.
// Thread-safe, except that start() and stop() take turns. A derived class calls stop() in its destructor.
class PluginServer : public v1beta1::Registration::Service {
 public:
  // `manager` outlives this. `socket_dir` is device-plugins.
  PluginServer(DeviceManager& manager, KubeletOptions options, std::string socket_dir);
  ~PluginServer() override;

  // Wipes the directory's sockets and serves kubelet.sock there. Errors: from errno, unavailable (cannot listen).
  [[nodiscard]] Result<void> start();
  // Ends every stream without a report to the manager, closes the server, joins all threads. Idempotent.
  virtual void stop();

  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* answer) override;

 protected:
  [[nodiscard]] virtual Result<void> listen();
  virtual void close_socket();
  [[nodiscard]] virtual std::shared_ptr<PluginClient> make_client(const std::string& resource, const std::string& path);
  [[nodiscard]] std::shared_ptr<PluginClient> client_of(const std::string& resource);  // null when there is none
  grpc::Status refuse(const std::string& resource, const Error& reason);
  [[nodiscard]] DeviceManager& manager() { return manager_; }
  [[nodiscard]] std::string socket_path() const { return socket_dir_ + "/kubelet.sock"; }

 private:
  struct Stream {
    std::shared_ptr<PluginClient> client;
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> ended;
  };

  Result<void> accept(const grpc::ServerContext& context, const v1beta1::RegisterRequest& request);
  Result<void> connect(const grpc::ServerContext& context, const std::string& resource, const std::string& path);
  void run(const std::shared_ptr<PluginClient>& client);
  void watch_in_background(const std::shared_ptr<PluginClient>& client) EXCLUDES(mutex_);

  DeviceManager& manager_;
  const KubeletOptions options_;
  const std::string socket_dir_;
  std::atomic<bool> stopping_ = false;
  SocketServer server_;

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<PluginClient>> clients_ GUARDED_BY(mutex_);  // by resource name
  std::vector<Stream> streams_ GUARDED_BY(mutex_);
};

// PodResources v1 without Get: pkg/kubelet/apis/podresources/server_v1.go. One object per life of the kubelet.
// Thread-safe, except that start() and stop() take turns. A derived class calls stop() in its destructor.
class PodResourcesServer : public v1::PodResourcesLister::Service {
 public:
  // `manager` outlives this. `dir` is pod-resources.
  PodResourcesServer(DeviceManager& manager, std::string dir) : manager_(manager), dir_(std::move(dir)) {}
  ~PodResourcesServer() override;

  // Serves kubelet.sock in the directory. Errors: from errno, unavailable (cannot listen).
  [[nodiscard]] Result<void> start();
  virtual void stop();  // idempotent

  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest* request,
                    v1::ListPodResourcesResponse* answer) override;
  grpc::Status GetAllocatableResources(grpc::ServerContext* context, const v1::AllocatableResourcesRequest* request,
                                       v1::AllocatableResourcesResponse* answer) override;

 protected:
  // The service of the socket: this one.
  [[nodiscard]] virtual grpc::Service& service() { return *this; }
  [[nodiscard]] Result<void> listen() { return server_.listen(dir_ + "/kubelet.sock", service()); }
  void close_socket() { server_.close(); }
  [[nodiscard]] DeviceManager& manager() { return manager_; }

 private:
  DeviceManager& manager_;
  const std::string dir_;
  SocketServer server_;
};

// A kubelet stand-in: real servers on
//   DIR/device-plugins/kubelet.sock   Registration v1beta1
//   DIR/pod-resources/kubelet.sock    PodResources v1
// and the file DIR/device-plugins/kubelet_internal_checkpoint, with the behaviour and the bugs of kubelet 1.36 as a
// plugin sees them. There are no containers: admit() returns the data that one would be started with.
//
// Thread-safe, except that restart(), go_down() and come_up() take turns. go_down() releases the thread of a stuck
// plugin call.
class Kubelet {
 public:
  // Creates the missing directories below `dir`, wipes the sockets in device-plugins, loads a checkpoint found there,
  // and serves. Errors: failed_precondition when a kubelet already listens there (a real one must not lose its
  // sockets), invalid_argument for a path too long for a socket, else from errno.
  [[nodiscard]] static Result<std::unique_ptr<Kubelet>> start(const std::string& dir, KubeletOptions options = {});
  virtual ~Kubelet();
  Kubelet(const Kubelet&) = delete;
  Kubelet& operator=(const Kubelet&) = delete;

  // Pods: see DeviceManager.
  [[nodiscard]] Result<PodResult> admit(const PodSpec& pod) { return manager_.admit(pod); }
  [[nodiscard]] Result<ContainerGrant> start_container(const std::string& pod, const std::string& container,
                                                       const std::string& ns = "default") {
    return manager_.start_container(ns, pod, container);
  }
  [[nodiscard]] Result<void> remove(const std::string& pod, const std::string& ns = "default") {
    return manager_.remove(ns, pod);
  }

  // Views. A resource never registered has 0 of everything.
  [[nodiscard]] ResourceView resource_view(const std::string& resource);
  [[nodiscard]] std::map<std::string, ResourceView> resources() { return manager_.resources(); }
  [[nodiscard]] std::vector<PodView> pods() { return manager_.pods(); }

  // Blocks until `predicate` holds (→ true) or `timeout` has passed. It is evaluated in this thread, first at once,
  // then after each change of state, and may call every view.
  [[nodiscard]] bool wait_for(const std::function<bool()>& predicate, std::chrono::milliseconds timeout) {
    return manager_.wait_for(predicate, timeout);
  }

  // Moves the clock of the five minutes' grace.
  void advance(std::chrono::milliseconds step) { manager_.advance(step); }

  // The process dies: streams end and servers close, but no socket is wiped. Pods continue. Idempotent.
  void go_down();
  // A new process: sockets wiped, checkpoint loaded, servers up. Errors: as start().
  [[nodiscard]] Result<void> come_up();
  [[nodiscard]] Result<void> restart();

  [[nodiscard]] const std::string& dir() const { return dir_; }
  [[nodiscard]] std::string device_plugin_dir() const { return dir_ + "/device-plugins"; }
  [[nodiscard]] std::string pod_resources_dir() const { return dir_ + "/pod-resources"; }
  [[nodiscard]] std::string kubelet_socket() const { return device_plugin_dir() + "/kubelet.sock"; }
  [[nodiscard]] std::string pod_resources_socket() const { return pod_resources_dir() + "/kubelet.sock"; }
  [[nodiscard]] std::string checkpoint_path() const { return device_plugin_dir() + "/kubelet_internal_checkpoint"; }

 protected:
  Kubelet(const std::string& dir, KubeletOptions options);
  // The servers of the next life, not started yet.
  [[nodiscard]] virtual std::shared_ptr<PluginServer> make_plugin_server();
  [[nodiscard]] virtual std::shared_ptr<PodResourcesServer> make_pod_resources_server();
  [[nodiscard]] DeviceManager& manager() { return manager_; }
  [[nodiscard]] const KubeletOptions& options() const { return options_; }

 private:
  const std::string dir_;
  const KubeletOptions options_;
  DeviceManager manager_;
  std::shared_ptr<PodResourcesServer> pod_resources_;  // null while down, as the next
  std::shared_ptr<PluginServer> plugins_;
};

}  // namespace neuron::sim
