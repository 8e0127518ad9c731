#include "agent/kube/observed_api.h"

#include <cstddef>
#include <optional>

#include "agent/kube/answers.h"

namespace neuron::kube {
namespace {

// "" where the node does not have the label.
std::string text_of(const Result<std::optional<std::string>>& label) {
  constexpr std::size_t kLongest = 63;  // of a label's value (docs: Kubernetes, "Labels and Selectors")
  return label && *label && (*label)->size() <= kLongest ? **label : "";
}

}  // namespace

void ObservedApi::count(const Result<ApiReply>& reply) {
  constexpr int kFirstError = 400;
  ++(reply && reply->status < kFirstError ? ok_ : errors_);
}

Result<ApiReply> ObservedApi::call(const ApiCall& call) {
  constexpr int kOk = 200;
  auto reply = api_.call(call);
  count(reply);
  if (!reply || reply->status != kOk || call.method != Method::get || call.path != path_) return reply;
  const auto zone = label_in(reply->body, "topology.kubernetes.io/zone", path_);
  const auto region = label_in(reply->body, "topology.kubernetes.io/region", path_);
  if (!zone && !region) return reply;  // no object
  const MutexLock lock(mutex_);
  place_ = {text_of(zone), text_of(region)};
  return reply;
}

Result<ApiReply> ObservedApi::stream(const ApiCall& call, const OnLine& on_line, const std::stop_token& stop) {
  auto reply = api_.stream(call, on_line, stop);
  count(reply);
  return reply;
}

std::map<std::string, std::uint64_t> ObservedApi::counts() const {
  return {{"ok", ok_.load()}, {"error", errors_.load()}};
}

NodePlace ObservedApi::place() const {
  const MutexLock lock(mutex_);
  return place_;
}

}  // namespace neuron::kube
