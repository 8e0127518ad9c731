#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "tools/neuron-sim/kubelet/kubelet.h"

// The kubelet stand-in with faults, counters and a view into admissions.
namespace neuron::fakes {

// How Register answers. closes: the socket accepts connections and closes them, as a kubelet that is going down.
enum class RegisterFault { none, error, hangs, closes };

// How PodResources answers. garbage: bytes that are no message; oversized: a List and GetAllocatableResources of 20
// MiB, where a gRPC client accepts 4 by default and 16 is the advice.
enum class PodResourcesFault { none, error, hangs, garbage, oversized };

struct KubeletFaults {
  RegisterFault registration = RegisterFault::none;
  PodResourcesFault pod_resources = PodResourcesFault::none;
};

// The calls to a plugin during an admission, as FakeKubeletOptions::on_step sees them for one resource of one
// container. The device manager's lock is free at each of them, as in the real kubelet: this is the window of its
// double allocation race.
enum class AdmissionStep { before_preferred, before_allocate, after_allocate };

struct FakeKubeletOptions : sim::KubeletOptions {
  KubeletFaults faults = {};
  // Called in the thread of admit(), no lock held. May call anything but admit() and stop().
  std::function<void(AdmissionStep, const std::string& resource)> on_step = {};
};

class FaultyPluginServer;
class FaultyPodResources;

// Thread-safe as sim::Kubelet; set_faults() takes turns with restart() and the like.
class FakeKubelet final : public sim::Kubelet {
 public:
  // Errors: see sim::Kubelet.
  [[nodiscard]] static Result<std::unique_ptr<FakeKubelet>> start(const std::string& dir,
                                                                  FakeKubeletOptions options = {});
  ~FakeKubelet() override { stop(); }

  [[nodiscard]] int allocatable(const std::string& resource) { return resource_view(resource).allocatable; }
  [[nodiscard]] int capacity(const std::string& resource) { return resource_view(resource).capacity; }
  [[nodiscard]] int registrations(const std::string& resource);  // accepted ones since the last start
  [[nodiscard]] int list_calls();  // of PodResources List since the last start, refused ones included

  // The side effect of PodResources List, without the call.
  void update_allocated() { manager().update_allocated(); }
  // Cuts the kubelet's stream to this resource's plugin. False when there is none.
  bool drop_client(const std::string& resource);
  [[nodiscard]] Result<void> set_faults(const KubeletFaults& faults);
  // Releases every thread and closes the servers. Idempotent.
  void stop() { go_down(); }

 private:
  FakeKubelet(const std::string& dir, FakeKubeletOptions options);
  std::shared_ptr<sim::PluginServer> make_plugin_server() override;
  std::shared_ptr<sim::PodResourcesServer> make_pod_resources_server() override;
  std::shared_ptr<FaultyPluginServer> plugins();
  std::shared_ptr<FaultyPodResources> pod_resources();

  const FakeKubeletOptions fake_options_;
  Mutex mutex_;
  KubeletFaults faults_ GUARDED_BY(mutex_);
  std::weak_ptr<FaultyPluginServer> plugins_ GUARDED_BY(mutex_);  // empty while down, as the next
  std::weak_ptr<FaultyPodResources> pod_resources_ GUARDED_BY(mutex_);
};

// A unix socket that accepts every connection and closes it at once. The destructor ends its thread and unlinks the
// socket.
class ClosingSocket {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ClosingSocket>> open(const std::string& path);
  ~ClosingSocket();
  ClosingSocket(const ClosingSocket&) = delete;
  ClosingSocket& operator=(const ClosingSocket&) = delete;

 private:
  ClosingSocket(std::string path, Fd listener, Fd stop);
  const std::string path_;
  const Fd listener_, stop_;  // stop_: an eventfd
  std::thread thread_;
};

}  // namespace neuron::fakes
