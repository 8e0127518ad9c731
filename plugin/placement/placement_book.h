#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/holdings/holding.h"
#include "agent/model/resource.h"
#include "plugin/placement/placed_pod.h"

namespace neuron::plugin {

// A pod at the API server.
struct PodName {
  std::string pod_namespace, name, uid;
  friend bool operator==(const PodName&, const PodName&) = default;
};

// The pods of this node that the kubelet has not acknowledged yet, and which of them its calls are for: the kubelet
// names none. Filled by PlacementWatch, asked by DevicePluginService.
//
// The kubelet admits pods in the order in which they were bound, one at a time, and its calls follow the order of a
// pod's containers. So a call is for the first waiting pod whose next container asks for as many units. Which one that
// is must be certain: of two, one is first when none of NEURON_ALLOC_TIME, creation and arrival in the watch
// contradicts it. Otherwise, and while the watch fails, no pod is meant: the agent chooses by itself.
//
// Thread-safe; no call blocks.
class PlacementBook : public std::enable_shared_from_this<PlacementBook> {
 public:
  // A call that no known pod explains waits as long for the watch, which is milliseconds behind the kubelet's as a
  // rule.
  static constexpr std::chrono::milliseconds kMostWait{500};
  // A pod that comes so soon after a call that no pod explained may have been the caller.
  static constexpr std::chrono::seconds kUnexplained{10};

  using Job = std::function<void()>;
  struct Ports {
    std::function<void(SteadyTime, Job)> post;  // runs a job then, on another thread
    std::function<void(PodName)> finished{};    // all ids of a pod were given as placed; no lock held
  };
  using Holdings = std::vector<holdings::Holding>;

  // `clock` must outlive it. Has to be in a shared_ptr.
  PlacementBook(Ports ports, const Clock& clock) : ports_(std::move(ports)), clock_(clock) {}

  // --- from the watch, on one thread ---
  void reset() EXCLUDES(mutex_);  // the listed pods follow
  void upsert(PlacedPod pod) EXCLUDES(mutex_);
  void remove(const std::string& uid) EXCLUDES(mutex_);
  void synced() EXCLUDES(mutex_);
  void trouble() EXCLUDES(mutex_);  // the pods may be out of date until the next of the calls above

  // --- from the kubelet's calls ---
  // Runs `then` once: now, where a waiting pod fits or the watch fails; else when one comes or kMostWait has passed, on
  // another thread.
  void when_known(model::Resource resource, int size, Job then) EXCLUDES(mutex_);
  void release(model::Resource resource) EXCLUDES(mutex_);  // those that wait run now

  struct Choice {
    std::string uid, pod, container;
    PlacedIds ids;  // of another resource where the container asks for two of the same cores
  };
  // GetPreferredAllocation: the ids that were chosen for the container that asks. nullopt: none were, or it is not
  // certain; the reason is logged, once for each pod.
  [[nodiscard]] std::optional<Choice> choose(model::Resource resource, int size, const Holdings& held) EXCLUDES(mutex_);
  // The outcome of a choice: "" = its ids were answered, else why not. Logged, a reason once for each pod.
  void answered(const Choice& choice, model::Resource resource, const std::string& obstacle) EXCLUDES(mutex_);
  // Allocate gave these units.
  void given(model::Resource resource, const std::vector<std::string>& ids, const Holdings& held) EXCLUDES(mutex_);

 private:
  struct Pod {
    PlacedPod pod;
    std::uint64_t arrival = 0;  // equal for those of one list
    bool listed = true;         // in the list that is being read
    bool doubtful = false;      // may have called before it was seen
    bool given_otherwise = false;
    std::set<std::pair<std::size_t, model::Resource>> given;  // container, resource
    std::set<std::string> logged;                             // reasons in the log
  };
  struct Fit {
    Pod* pod = nullptr;
    std::size_t container = 0;
  };
  struct Call {
    model::Resource resource{};
    int size = 0;
    SteadyTime at{};
  };
  struct Waiting {
    Call call;  // `at`: when it gives up
    Job then;
  };
  struct Asked {  // the last choice for a resource
    std::string uid;
    std::size_t container = 0;
    std::vector<std::string> ids;  // as placed; empty: of another resource
    SteadyTime at{};
  };

  [[nodiscard]] static std::optional<std::size_t> next_container(const Pod& pod, const Call& call,
                                                                 const Holdings& held);
  [[nodiscard]] std::vector<Fit> fits(const Call& call, const Holdings& held) REQUIRES(mutex_);
  [[nodiscard]] std::optional<Fit> certain(const std::vector<Fit>& fitting, model::Resource resource) REQUIRES(mutex_);
  [[nodiscard]] bool is_explained(const Call& call) REQUIRES(mutex_);
  void tell(Pod& pod, model::Resource resource, const std::string& why) REQUIRES(mutex_);
  void unexplained(const Call& call) REQUIRES(mutex_);
  [[nodiscard]] std::optional<PodName> note_given(Pod& pod, std::size_t container, model::Resource resource)
      REQUIRES(mutex_);
  // Those of a resource; without one those that need not wait any more.
  [[nodiscard]] std::vector<Waiting> take_waiting(std::optional<model::Resource> of) REQUIRES(mutex_);
  void run_ready() EXCLUDES(mutex_);  // the waiting calls that need not wait any more

  const Ports ports_;
  const Clock& clock_;
  Mutex mutex_;
  bool current_ GUARDED_BY(mutex_) = false;
  bool listing_ GUARDED_BY(mutex_) = false;  // between reset() and synced()
  std::uint64_t arrivals_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, Pod> pods_ GUARDED_BY(mutex_);  // that wait, by uid
  std::vector<Call> unexplained_ GUARDED_BY(mutex_);
  std::vector<Waiting> waiting_ GUARDED_BY(mutex_);
  std::map<model::Resource, Asked> asked_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin
