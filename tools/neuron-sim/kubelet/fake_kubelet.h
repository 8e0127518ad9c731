#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "tools/neuron-sim/kubelet/device_manager.h"
#include "tools/neuron-sim/kubelet/options.h"
#include "tools/neuron-sim/kubelet/plugin_server.h"
#include "tools/neuron-sim/kubelet/pod.h"
#include "tools/neuron-sim/kubelet/pod_resources_server.h"

namespace neuron::sim {

// A kubelet stand-in for tests and for `neuron-sim kubelet`: real servers on
//   DIR/device-plugins/kubelet.sock   Registration v1beta1
//   DIR/pod-resources/kubelet.sock    PodResources v1
// and the file DIR/device-plugins/kubelet_internal_checkpoint, with the behaviour and the bugs of kubelet 1.36 as a
// plugin meets them. There are no containers: what one would get is the answer of admit().
//
// Thread-safe, except that restart(), go_down(), come_up(), set_faults() and stop() take turns. The thread of a stuck
// plugin call is freed by go_down() and stop().
class FakeKubelet {
 public:
  // Creates what is missing below `dir`, wipes the sockets in device-plugins, loads a checkpoint found there, serves.
  // Errors: failed_precondition when a kubelet already answers there (a real one must not lose its sockets),
  // invalid_argument for a path too long for a socket, else from errno.
  [[nodiscard]] static Result<std::unique_ptr<FakeKubelet>> start(const std::string& dir, KubeletOptions options = {});
  ~FakeKubelet();

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
  [[nodiscard]] int allocatable(const std::string& resource) { return resource_view(resource).allocatable; }
  [[nodiscard]] int capacity(const std::string& resource) { return resource_view(resource).capacity; }
  [[nodiscard]] ResourceView resource_view(const std::string& resource);
  [[nodiscard]] std::map<std::string, ResourceView> resources() { return manager_.resources(); }
  [[nodiscard]] std::vector<PodView> pods() { return manager_.pods(); }
  [[nodiscard]] int registrations(const std::string& resource);  // accepted ones since the last start
  [[nodiscard]] int list_calls();                                // PodResources List since the last start

  // Blocks until `predicate` holds (→ true) or `timeout` is over. It is evaluated in this thread, first at once, then
  // after each change of state, and may call every view.
  [[nodiscard]] bool wait_for(const std::function<bool()>& predicate, std::chrono::milliseconds timeout) {
    return manager_.wait_for(predicate, timeout);
  }

  // What PodResources List does on the side, without the call.
  void update_allocated() { manager_.update_allocated(); }
  // Moves the clock of the five minutes' grace.
  void advance(std::chrono::milliseconds step) { manager_.advance(step); }
  // Cuts the kubelet's stream to this resource's plugin. False when there is none.
  bool drop_client(const std::string& resource);
  [[nodiscard]] Result<void> set_faults(const KubeletFaults& faults);

  // The process dies: streams end, servers are gone, nobody wipes anything. Pods go on.
  void go_down();
  // A new process: sockets wiped, checkpoint loaded, servers up. Errors: as start().
  [[nodiscard]] Result<void> come_up();
  [[nodiscard]] Result<void> restart();
  // Frees every thread and closes the servers. Idempotent; the destructor does it too.
  void stop() { go_down(); }

  [[nodiscard]] const std::string& dir() const { return dir_; }
  [[nodiscard]] std::string device_plugin_dir() const { return dir_ + "/device-plugins"; }
  [[nodiscard]] std::string kubelet_socket() const { return device_plugin_dir() + "/kubelet.sock"; }
  [[nodiscard]] std::string pod_resources_socket() const { return dir_ + "/pod-resources/kubelet.sock"; }
  [[nodiscard]] std::string checkpoint_path() const { return device_plugin_dir() + "/kubelet_internal_checkpoint"; }

 private:
  FakeKubelet(const std::string& dir, KubeletOptions options);

  const std::string dir_;
  KubeletOptions options_;
  DeviceManager manager_;
  Mutex servers_mutex_;  // the pointers below
  std::shared_ptr<PodResourcesServer> pod_resources_ GUARDED_BY(servers_mutex_);
  std::shared_ptr<PluginServer> plugins_ GUARDED_BY(servers_mutex_);
};

}  // namespace neuron::sim
