#include "tools/neuron-sim/instance_choice.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "agent/kube/api_client.h"

namespace neuron::sim {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPause{250};  // between two attempts
constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;

bool is_passing(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::deadline_exceeded;
}

// The files are read anew for each attempt: they may have been rotated.
Result<std::optional<std::string>> ask_once(const kube::InClusterPlaces& places, const std::string& node,
                                            milliseconds deadline) {
  TRY_ASSIGN(const kube::ClusterAccess access, kube::in_cluster_access(places));
  return kube::node_label(access, node, kTypeLabel, {deadline, kMaxBytes});
}

}  // namespace

LabelAnswer ask_type_label(const kube::InClusterPlaces& places, const std::string& node, milliseconds budget) {
  const auto end = Clock::now() + budget;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    auto label = ask_once(places, node, std::max(left, milliseconds(1)));
    if (label) return {*std::move(label), "", false};
    const bool passing = is_passing(label.error().code);
    if (!passing || Clock::now() + kPause >= end) return {std::nullopt, label.error().message, passing};
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace neuron::sim
