#include "plugin/placement/placement_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

constexpr const char* kPods = "/api/v1/pods";

kube::ApiCall acknowledgement(const PodName& pod) {
  const nlohmann::json body{{"metadata", {{"uid", pod.uid}, {"annotations", {{kAllocatedAnnotation, "true"}}}}}};
  return {.method = kube::Method::merge_patch,
          .path = "/api/v1/namespaces/" + kube::percent_encoded(pod.pod_namespace) + "/pods/" +
                  kube::percent_encoded(pod.name),
          .body = body.dump(),
          .accept = kube::kMetadataOnly};
}

}  // namespace

PlacementWatch::PlacementWatch(kube::Api& api, std::string node,
                               std::function<void(SteadyTime, PlacementBook::Job)> post, const Clock& clock)
    : api_(api),
      node_(std::move(node)),
      clock_(clock),
      backoff_(kFirstRetry, kLongestRetry),
      book_(std::make_shared<PlacementBook>(
          PlacementBook::Ports{std::move(post), [this](PodName pod) { add(std::move(pod)); }}, clock)) {}

// ---- The watch

void PlacementWatch::on_upsert(const kube::ApiObject& object) {
  restored();
  book_->upsert(read_placed_pod(object));
}

void PlacementWatch::on_remove(const kube::ApiObject& object) {
  restored();
  book_->remove(object.uid);
}

void PlacementWatch::on_synced() {
  restored();
  book_->synced();
}

void PlacementWatch::restored() {
  if (!std::exchange(error_, "").empty()) spdlog::info("pod watch restored");
}

void PlacementWatch::on_trouble(const Error& error) {
  if (error_ != error.message) spdlog::warn("pod watch failed, placements not honored: {}", error.message);
  error_ = error.message;
  book_->trouble();
}

// ---- Writing back

void PlacementWatch::add(PodName pod) {
  const MutexLock lock(mutex_);
  if (pending_.size() == kMostPending) pending_.erase(pending_.begin());
  pending_.push_back({std::move(pod), 0, clock_.now()});
  loop_.wake();
}

milliseconds PlacementWatch::turn() {
  constexpr milliseconds kLongest = std::chrono::minutes(1);
  Pending next;
  {
    const MutexLock lock(mutex_);
    const auto first = std::ranges::min_element(pending_, {}, &Pending::due);
    if (first == pending_.end()) return kLongest;
    const SteadyTime now = clock_.now();
    if (first->due > now) return std::min(std::chrono::ceil<milliseconds>(first->due - now), kLongest);
    next = std::move(*first);
    pending_.erase(first);
  }
  write(std::move(next));
  return milliseconds(0);
}

void PlacementWatch::write(Pending pending) {
  const kube::ApiCall call = acknowledgement(pending.pod);
  auto reply = api_.call(call);
  const int status = reply ? reply->status : 0;
  const auto written = reply ? kube::body_of(*std::move(reply), call) : fail(std::move(reply).error());
  if (written) return backoff_.reset();
  if (status == 404 || status == 409) return;  // the pod is gone, or another one of its name is there
  const ErrorCode code = written.error().code;
  const bool is_refused = code == ErrorCode::permission_denied || code == ErrorCode::invalid_argument;
  if (is_refused || ++pending.attempts == kMostAttempts) {
    spdlog::warn("placement not acknowledged pod={}/{}: {}", pending.pod.pod_namespace, pending.pod.name,
                 written.error().message);
    return;
  }
  pending.due = clock_.now() + backoff_.next();
  const MutexLock lock(mutex_);
  pending_.push_back(std::move(pending));
}

void PlacementWatch::run(const std::stop_token& stop) {
  const std::jthread watcher([this](const std::stop_token& inner) {
    kube::ObjectWatch(api_, {kPods, "spec.nodeName=" + node_}, *this, clock_).run(inner);
  });
  loop_.run(stop, [this] { return turn(); });
}

}  // namespace neuron::plugin
