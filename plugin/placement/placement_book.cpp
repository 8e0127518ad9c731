#include "plugin/placement/placement_book.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace neuron::plugin {
namespace {

using model::Resource;

constexpr std::size_t kMostPods = 1024;  // that wait; a kubelet's own limit is 110 to 250
constexpr std::size_t kMostCalls = 64;

bool has_given(const PlacementBook::Holdings& held, const PlacedPod& pod, const PlacedContainer& container,
               Resource resource) {
  const std::string by_name = pod.full_name() + "/" + container.name;
  const std::string by_uid = "pod " + pod.uid + "/" + container.name;
  return std::ranges::any_of(held, [&](const holdings::Holding& one) {
    return one.resource == resource && one.claim.empty() &&
           (one.holder == by_name || one.holder == by_uid || one.shown_as == by_name);
  });
}

std::vector<std::string> texts_of(const std::vector<int>& ids) {
  std::vector<std::string> texts;
  for (const int id : ids) texts.push_back(std::to_string(id));
  return texts;
}

// Ids of neuron are those of its alias as well.
bool are_of(const std::optional<PlacedIds>& placed, Resource resource) {
  return placed && placed->of == (resource == Resource::neurondevice ? Resource::neuron : resource);
}

bool are_same(std::vector<std::string> a, std::vector<std::string> b) {
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

}  // namespace

// ---- From the watch

void PlacementBook::reset() {
  const MutexLock lock(mutex_);
  listing_ = true;
  ++arrivals_;
  for (auto& [uid, pod] : pods_) pod.listed = false;
}

void PlacementBook::upsert(PlacedPod pod) {
  {
    const MutexLock lock(mutex_);
    if (!listing_) {
      ++arrivals_;
      current_ = true;
    }
    const auto known = pods_.find(pod.uid);
    if (!pod.waits || pod.containers.empty()) {
      if (known != pods_.end()) pods_.erase(known);
    } else if (known != pods_.end()) {
      known->second.listed = true;
      known->second.pod = std::move(pod);
    } else if (pods_.size() < kMostPods) {
      spdlog::debug("pod waits pod={} placed={}", pod.full_name(), pod.is_placed());
      Pod& added = pods_[pod.uid];
      added.pod = std::move(pod);
      added.arrival = arrivals_;
      const SteadyTime now = clock_.now();
      added.doubtful = std::ranges::any_of(unexplained_, [&](const Call& call) {
        return now - call.at < kUnexplained && next_container(added, call, {}).has_value();
      });
    }
  }
  run_ready();
}

void PlacementBook::remove(const std::string& uid) {
  const MutexLock lock(mutex_);
  if (!listing_) current_ = true;
  pods_.erase(uid);
}

void PlacementBook::synced() {
  {
    const MutexLock lock(mutex_);
    listing_ = false;
    current_ = true;
    std::erase_if(pods_, [](const auto& one) { return !one.second.listed; });
  }
  run_ready();
}

void PlacementBook::trouble() {
  {
    const MutexLock lock(mutex_);
    listing_ = false;
    current_ = false;
  }
  run_ready();
}

// ---- Which pod a call is for

// The kubelet's calls follow the order of containers: the next is the first without an answer for this resource.
std::optional<std::size_t> PlacementBook::next_container(const Pod& pod, const Call& call, const Holdings& held) {
  if (pod.given_otherwise) return std::nullopt;
  for (std::size_t i = 0; i < pod.pod.containers.size(); ++i) {
    const PlacedContainer& one = pod.pod.containers[i];
    const auto request = one.requests.find(call.resource);
    if (request == one.requests.end() || pod.given.contains({i, call.resource})) continue;
    if (has_given(held, pod.pod, one, call.resource)) continue;
    return request->second == call.size ? std::optional(i) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<PlacementBook::Fit> PlacementBook::fits(const Call& call, const Holdings& held) {
  std::vector<Fit> fitting;
  for (auto& [uid, pod] : pods_) {
    if (const auto container = next_container(pod, call, held)) fitting.push_back({&pod, *container});
  }
  return fitting;
}

bool PlacementBook::is_explained(const Call& call) {
  return std::ranges::any_of(pods_, [&](const auto& one) { return next_container(one.second, call, {}).has_value(); });
}

// The first of the pods, if it is certain which one that is.
std::optional<PlacementBook::Fit> PlacementBook::certain(const std::vector<Fit>& fitting, Resource resource) {
  const auto is_before = [](const Pod& a, const Pod& b) {
    const bool both_timed = a.pod.time && b.pod.time;
    const bool is_later =
        (both_timed && *a.pod.time > *b.pod.time) || a.arrival > b.arrival || a.pod.created > b.pod.created;
    return !is_later && (a.arrival < b.arrival || (both_timed && *a.pod.time < *b.pod.time));
  };
  for (const Fit& one : fitting) {
    const auto is_first = [&](const Fit& other) { return other.pod == one.pod || is_before(*one.pod, *other.pod); };
    if (!one.pod->doubtful && std::ranges::all_of(fitting, is_first)) return one;
  }
  for (const Fit& one : fitting) {
    if (!one.pod->pod.is_placed()) continue;
    const auto other = std::ranges::find_if(fitting, [&](const Fit& that) { return that.pod != one.pod; });
    tell(*one.pod, resource,
         other == fitting.end() ? "it was seen only after a call that may have been for it"
                                : "the call may be for another pod as well: " + other->pod->pod.full_name());
  }
  return std::nullopt;
}

void PlacementBook::tell(Pod& pod, Resource resource, const std::string& why) {
  if (!pod.logged.insert(std::string(model::short_name(resource)) + why).second) return;
  spdlog::warn("placement not honored pod={} resource={}: {}", pod.pod.full_name(), model::resource_name(resource),
               why);
}

void PlacementBook::unexplained(const Call& call) {
  std::erase_if(unexplained_, [&](const Call& one) { return call.at - one.at >= kUnexplained; });
  if (unexplained_.size() == kMostCalls) unexplained_.erase(unexplained_.begin());
  unexplained_.push_back(call);
}

std::optional<PlacementBook::Choice> PlacementBook::choose(Resource resource, int size, const Holdings& held) {
  const MutexLock lock(mutex_);
  const Call call{resource, size, clock_.now()};
  asked_.erase(resource);
  const std::vector<Fit> fitting = fits(call, held);
  if (!current_ || fitting.empty()) {
    for (const Fit& one : fitting) {
      if (one.pod->pod.is_placed()) tell(*one.pod, resource, "the watch of pods fails");
    }
    unexplained(call);
    return std::nullopt;
  }
  const auto first = certain(fitting, resource);
  if (!first) return std::nullopt;
  Pod& pod = *first->pod;
  const PlacedContainer& container = pod.pod.containers[first->container];
  if (!pod.pod.problem.empty()) tell(pod, resource, pod.pod.problem);
  std::vector<std::string> wanted;
  if (are_of(container.placed, resource)) wanted = texts_of(container.placed->ids);
  asked_[resource] = {pod.pod.uid, first->container, std::move(wanted), call.at};
  if (!container.placed) return std::nullopt;
  return Choice{pod.pod.uid, pod.pod.full_name(), container.name, *container.placed};
}

void PlacementBook::answered(const Choice& choice, Resource resource, const std::string& obstacle) {
  if (obstacle.empty()) {
    spdlog::info("placement honored pod={} container={} resource={} ids={}", choice.pod, choice.container,
                 model::resource_name(resource), fmt::join(choice.ids.ids, ","));
    return;
  }
  const MutexLock lock(mutex_);
  if (const auto found = pods_.find(choice.uid); found != pods_.end()) tell(found->second, resource, obstacle);
}

// ---- What was given

// The pod, if all that was placed is given now.
std::optional<PodName> PlacementBook::note_given(Pod& pod, std::size_t container, Resource resource) {
  pod.given.insert({container, resource});
  if (!pod.pod.is_placed()) return std::nullopt;
  for (std::size_t i = 0; i < pod.pod.containers.size(); ++i) {
    const PlacedContainer& one = pod.pod.containers[i];
    if (!one.placed) continue;
    const bool is_given = pod.given.contains({i, one.placed->of}) ||
                          (one.placed->of == Resource::neuron && pod.given.contains({i, Resource::neurondevice}));
    if (!is_given) return std::nullopt;
  }
  return PodName{pod.pod.pod_namespace, pod.pod.name, pod.pod.uid};
}

void PlacementBook::given(Resource resource, const std::vector<std::string>& ids, const Holdings& held) {
  std::optional<PodName> finished;
  {
    const MutexLock lock(mutex_);
    const SteadyTime now = clock_.now();
    const auto node = asked_.extract(resource);
    if (!node.empty() && now - node.mapped().at < holdings::kMaxAdmission) {
      const Asked& asked = node.mapped();
      const auto found = pods_.find(asked.uid);
      if (found == pods_.end()) return;
      Pod& pod = found->second;
      if (!asked.ids.empty() && !are_same(asked.ids, ids)) {
        pod.given_otherwise = true;
        tell(pod, resource, "the kubelet gave it " + fmt::format("{}", fmt::join(ids, ",")));
        return;
      }
      finished = note_given(pod, asked.container, resource);
    } else {
      // The kubelet asks for no preference where it gives all that is left.
      const Call call{resource, static_cast<int>(ids.size()), now};
      std::vector<Fit> fitting = fits(call, held);
      std::erase_if(fitting, [&](const Fit& one) {
        const auto& placed = one.pod->pod.containers[one.container].placed;
        return !are_of(placed, resource) || !are_same(texts_of(placed->ids), ids);
      });
      if (fitting.size() != 1 || !current_) return;
      finished = note_given(*fitting.front().pod, fitting.front().container, resource);
    }
  }
  if (finished && ports_.finished) ports_.finished(*std::move(finished));
}

// ---- Calls that wait for the watch

void PlacementBook::when_known(Resource resource, int size, Job then) {
  const SteadyTime until = clock_.now() + kMostWait;
  {
    const MutexLock lock(mutex_);
    const Call call{resource, size, until};
    if (current_ && !is_explained(call)) waiting_.push_back({call, std::exchange(then, nullptr)});
  }
  if (then) return then();
  ports_.post(until, [weak = weak_from_this()] {
    if (const auto book = weak.lock()) book->run_ready();
  });
}

std::vector<PlacementBook::Waiting> PlacementBook::take_waiting(std::optional<Resource> of) {
  const SteadyTime now = clock_.now();
  std::vector<Waiting> taken, left;
  for (Waiting& one : waiting_) {
    const bool waits = of ? one.call.resource != *of : current_ && now < one.call.at && !is_explained(one.call);
    (waits ? left : taken).push_back(std::move(one));
  }
  waiting_ = std::move(left);
  return taken;
}

void PlacementBook::run_ready() {
  std::vector<Waiting> ready;
  {
    const MutexLock lock(mutex_);
    ready = take_waiting(std::nullopt);
  }
  for (const Waiting& one : ready) one.then();
}

void PlacementBook::release(Resource resource) {
  std::vector<Waiting> ready;
  {
    const MutexLock lock(mutex_);
    ready = take_waiting(resource);
  }
  for (const Waiting& one : ready) one.then();
}

}  // namespace neuron::plugin
