#include "tools/neuron-agent/node_place.h"

#include <cstddef>
#include <optional>

#include "agent/kube/answers.h"

namespace neuron::agent {
namespace {

// "" where the node does not have it.
std::string text_of(const Result<std::optional<std::string>>& label) {
  constexpr std::size_t kLongest = 63;  // of a label's value (docs: Kubernetes, "Labels and Selectors")
  return label && *label && (*label)->size() <= kLongest ? **label : "";
}

}  // namespace

Result<kube::ApiReply> NodePlaceApi::call(const kube::ApiCall& call) {
  constexpr int kOk = 200;
  auto reply = api_.call(call);
  if (!reply || reply->status != kOk || call.method != kube::Method::get || call.path != path_) return reply;
  const auto zone = kube::label_in(reply->body, "topology.kubernetes.io/zone", path_);
  const auto region = kube::label_in(reply->body, "topology.kubernetes.io/region", path_);
  if (!zone && !region) return reply;  // no object
  const MutexLock lock(mutex_);
  place_ = {text_of(zone), text_of(region)};
  return reply;
}

NodePlace NodePlaceApi::place() const {
  const MutexLock lock(mutex_);
  return place_;
}

}  // namespace neuron::agent
