#include <algorithm>
#include <set>
#include <utility>

#include "agent/base/parse.h"
#include "tools/neuron-agent/explain_pod.h"

// Which pod is meant, and which may have been.
namespace neuron::agent {
namespace {

constexpr std::size_t kMostNear = 5;
constexpr std::size_t kMaxText = 600;  // bytes that are compared; a namespace and a name have 317
constexpr std::size_t kMaxEdits = 4;

// A name that goes on where the wanted one ends ("train" and "train-0"), or that is few edits away, the nearest first.
std::vector<std::string> near_names(const std::set<std::pair<std::string, std::string>>& pods, std::string_view space,
                                    std::string_view name) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& [pod_namespace, pod] : pods) {
    if (name.empty() || name.size() > kMaxText || pod.size() > kMaxText) continue;
    const std::size_t edits = edit_distance(name, pod);
    const bool goes_on = pod.starts_with(name);
    if (!goes_on && edits > std::min(kMaxEdits, name.size() / 2)) continue;
    const std::size_t elsewhere = pod_namespace == space || space.empty() ? 0 : 1;
    ranked.emplace_back((goes_on ? 0 : 2 * edits) + elsewhere, pod_namespace + '/' + pod);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> near;
  for (std::size_t i = 0; i < std::min(ranked.size(), kMostNear); ++i) near.push_back(ranked[i].second);
  return near;
}

}  // namespace

PodChoice choose_pod(const std::vector<model::Allocation>& allocations, std::string_view wanted) {
  const auto slash = wanted.find('/');
  const std::string_view space = slash == std::string_view::npos ? "" : wanted.substr(0, slash);
  const std::string_view name = slash == std::string_view::npos ? wanted : wanted.substr(slash + 1);
  std::set<std::pair<std::string, std::string>> pods;
  for (const model::Allocation& one : allocations) pods.emplace(one.pod_namespace, one.pod);
  PodChoice choice;
  choice.pods = pods.size();
  choice.pod = std::string(name);
  std::vector<std::string> spaces;
  for (const auto& [pod_namespace, pod] : pods) {
    if (pod == name && (slash == std::string_view::npos || pod_namespace == space)) spaces.push_back(pod_namespace);
  }
  if (spaces.size() == 1) {
    choice.pod_namespace = spaces.front();
  } else {
    choice.near = near_names(pods, space, name);
  }
  return choice;
}

}  // namespace neuron::agent
