#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "deviceplugin/v1beta1/api.pb.h"
#include "tools/neuron-sim/kubelet/allocation.h"
#include "tools/neuron-sim/kubelet/plugin_client.h"
#include "tools/neuron-sim/kubelet/pod.h"

namespace neuron::sim {

// The topology manager's policy, scope container. A simplified merge of hints: the smallest set of NUMA nodes that can
// serve every resource of the container.
enum class NumaPolicy { none, best_effort, single_numa_node };

// Passive data.
struct KubeletOptions {
  unsigned seed = 1;  // of the order of resources and ids
  NumaPolicy numa_policy = NumaPolicy::none;
  std::chrono::milliseconds dial_timeout{10'000};  // Register's call back to the plugin
  // One line per event ("registered aws.amazon.com/neuron from neuron-1.sock"). Any thread, no lock held; must not
  // call back.
  std::function<void(const std::string& line)> on_event = {};
};

// The kubelet's device manager: the holder of each device. It follows pkg/kubelet/cm/devicemanager/manager.go of
// 1.36 step by step, its bugs included, because a plugin sees those steps. Thread-safe. As in the original, and with
// the original's races, its lock is never held during an RPC or a callback.
class DeviceManager {
 public:
  DeviceManager(KubeletOptions options, std::string checkpoint_path);

  // --- called by the plugin server ---
  void plugin_connected(const std::string& resource, std::shared_ptr<PluginClient> client, PluginOptions options);
  void plugin_updated(const std::string& resource, const v1beta1::ListAndWatchResponse& message);
  // Healthy devices become unhealthy, the endpoint stops and its grace of five minutes begins.
  void plugin_disconnected(const std::string& resource);

  // --- pods ---
  // Allocates for the init containers, then the others, then starts all: one pod at a time, blocking on the plugin.
  // Errors: invalid_argument (a pod of that name exists, a container twice or none); otherwise the pod is refused
  // permanently and the message is the pod's status message ("Pod was rejected: …").
  [[nodiscard]] Result<PodResult> admit(const PodSpec& spec);
  // A restart of one container: PreStartContainer again where required, and the answers of its admission.
  // Errors: not_found; else the refusal of PreStartContainer.
  [[nodiscard]] Result<ContainerGrant> start_container(const std::string& ns, const std::string& pod,
                                                       const std::string& container);
  // The pod ends. Its devices are freed lazily, by the next update_allocated(). Errors: not_found.
  [[nodiscard]] Result<void> remove(const std::string& ns, const std::string& pod);
  // Drops the allocations of ended pods; when there are any, devices of an admission in flight are lost (the double
  // allocation race, kubernetes/kubernetes#137534). Part of each admission and of PodResources List.
  void update_allocated();

  // --- views ---
  // Every resource that ever was registered; one whose grace has ended has capacity 0.
  [[nodiscard]] std::map<std::string, ResourceView> resources();
  // All active pods, by namespace and name, one under admission included.
  [[nodiscard]] std::vector<PodView> pods();
  // Healthy devices of every resource, one entry per device and NUMA node.
  [[nodiscard]] std::vector<DeviceId> allocatable_devices();

  // --- life ---
  // The kubelet process dies: all but the pods is forgotten, and an admission in flight fails.
  void forget();
  // A new process reads its checkpoint: resources come back stopped and empty, containers keep their devices. An
  // unreadable file is an event, no error: its allocations are lost, as in the real kubelet.
  void restore();
  // Moves the clock of the grace.
  void advance(std::chrono::milliseconds step);

  // Calls `predicate`, no lock held, now and after each change until it is true (→ true) or `timeout` has passed.
  [[nodiscard]] bool wait_for(const std::function<bool()>& predicate, std::chrono::milliseconds timeout);
  // Wakes wait_for(): for changes that happen elsewhere.
  void notify();
  void event(const std::string& line) const;

 private:
  struct Endpoint {
    std::shared_ptr<PluginClient> client;  // null: restored from the checkpoint, its plugin not yet back
    PluginOptions options;
    std::optional<SteadyTime> stopped;
  };
  struct Grant {
    std::map<std::int64_t, std::vector<std::string>> ids_by_numa;
    v1beta1::ContainerAllocateResponse response;
    [[nodiscard]] IdSet ids() const;
  };
  using ContainerDevices = std::map<std::string, Grant>;       // by resource
  using PodDevices = std::map<std::string, ContainerDevices>;  // by container
  using IdsByResource = std::map<std::string, IdSet>;
  struct Admission {  // one container's turn
    std::string uid;
    const ContainerSpec& container;
    std::optional<std::set<int>> affinity;
    std::uint64_t life = 0;
  };
  struct Taking;  // state of devices_to_allocate()

  // pod_admission.cpp
  Result<void> allocate_pod(const std::string& uid, const PodSpec& spec, std::uint64_t life);
  Result<void> allocate_container(Admission admission, IdsByResource& reusable);
  Result<std::optional<std::set<int>>> affinity_of(const ContainerSpec& container, const IdsByResource& reusable)
      REQUIRES(mutex_);
  ContainerGrant run_options(const std::string& uid, const ContainerSpec& container);
  Result<void> pre_start(const std::string& uid, const ContainerSpec& container, const std::string& resource);

  Result<bool> allocate_resource(const Admission& admission, const std::string& resource, int needed,
                                 const IdSet& reusable) REQUIRES(mutex_);
  Result<IdSet> devices_to_allocate(const Admission& admission, const std::string& resource, int required,
                                    const IdSet& reusable) REQUIRES(mutex_);
  Result<IdSet> fill(const Admission& admission, Taking& taking, int required) REQUIRES(mutex_);
  Result<IdSet> ask_preferred(const Admission& admission, const std::string& resource, const IdSet& available,
                              const IdSet& must_include, int size) REQUIRES(mutex_);
  Result<void> keep_answer(const Admission& admission, const std::string& resource, const IdSet& ids,
                           const v1beta1::ContainerAllocateResponse& response) REQUIRES(mutex_);
  Result<void> same_life(std::uint64_t life) const REQUIRES(mutex_);

  // device_manager.cpp
  void note_change() REQUIRES(mutex_);
  bool is_plugin_resource(const std::string& resource) const REQUIRES(mutex_);
  void update_allocated_locked() REQUIRES(mutex_);
  IdsByResource ids_of_pods() const REQUIRES(mutex_);
  const ContainerDevices* container_devices(const std::string& uid, const std::string& container) const
      REQUIRES(mutex_);
  Checkpoint checkpoint() const REQUIRES(mutex_);
  void save_checkpoint() EXCLUDES(mutex_);
  bool drop_expired() REQUIRES(mutex_);
  SteadyTime now() const REQUIRES(mutex_);
  std::vector<std::string> shuffled(const IdSet& ids) REQUIRES(mutex_);
  std::vector<std::string> resource_order(const ContainerSpec& container) REQUIRES(mutex_);

  const KubeletOptions options_;
  const std::string checkpoint_path_;
  const SystemClock clock_;
  Mutex admission_mutex_;   // one admission at a time
  Mutex checkpoint_mutex_;  // one writer at a time; taken before mutex_

  Mutex mutex_;
  std::condition_variable_any changed_;  // with mutex_: generation_ moved
  std::uint64_t generation_ GUARDED_BY(mutex_) = 0;
  std::uint64_t life_ GUARDED_BY(mutex_) = 0;  // of the kubelet process
  std::uint64_t next_uid_ GUARDED_BY(mutex_) = 1;
  std::chrono::milliseconds advanced_ GUARDED_BY(mutex_){0};
  std::mt19937 random_ GUARDED_BY(mutex_);
  std::map<std::string, PodSpec> active_ GUARDED_BY(mutex_);          // by uid
  std::map<std::string, PodDevices> pod_devices_ GUARDED_BY(mutex_);  // by uid; committed allocations
  IdsByResource allocated_ GUARDED_BY(mutex_);                        // committed and in flight
  IdsByResource healthy_ GUARDED_BY(mutex_), unhealthy_ GUARDED_BY(mutex_);
  std::map<std::string, PluginDevices> devices_ GUARDED_BY(mutex_);
  std::map<std::string, Endpoint> endpoints_ GUARDED_BY(mutex_);
  IdSet gone_ GUARDED_BY(mutex_);  // resources whose grace has ended: "0" in the node status from then on
};

}  // namespace neuron::sim
