#include "plugin/dra/claim/claim_pods.h"

#include <algorithm>
#include <set>

namespace neuron::plugin::dra {
namespace {

bool uses(const PodUse& pod, const std::string& claim) {
  return std::any_of(pod.containers.begin(), pod.containers.end(),
                     [&](const ContainerUse& container) { return container.claims.contains(claim); });
}

Error no_pod(const Claim& claim) {
  if (claim.other_consumers.empty()) {
    return make_error(ErrorCode::failed_precondition, "no pod found that the claim is reserved for");
  }
  return make_error(ErrorCode::failed_precondition,
                    "the claim is reserved for " + claim.other_consumers.front() + ", but no pod on this node uses it");
}

}  // namespace

// Of a group that the claim is reserved for these are among the pods of its namespace that the kubelet has: all pods
// that use a device of this node are on it, and the kubelet has a pod before it prepares it.
Result<std::vector<PodRef>> PodsOfClaims::pods_of(const Claim& claim, const std::string& claim_namespace) {
  std::vector<PodRef> pods = claim.pods;
  if (claim.other_consumers.empty()) return pods;
  if (!pods_here_ && here_) pods_here_ = here_();
  if (!pods_here_) return fail(ErrorCode::failed_precondition, "the pods of this node are unknown");
  if (!*pods_here_) return fail(Error(pods_here_->error()).with_context("asking the kubelet for its pods"));
  std::set<std::string> names;
  for (const auto& [pod_namespace, name] : **pods_here_) {
    if (pod_namespace == claim_namespace) names.insert(name);
  }
  for (const PodRef& pod : pods) names.erase(pod.name);
  for (const std::string& name : names) pods.push_back({name, ""});
  return pods;
}

const Result<PodUse>& PodsOfClaims::pod(const std::string& pod_namespace, const std::string& name) {
  const auto known = pods_.find({pod_namespace, name});
  if (known != pods_.end()) return known->second;
  return pods_.emplace(std::pair(pod_namespace, name), reader_.read_pod(pod_namespace, name)).first->second;
}

Result<PodsOfClaims::Uses> PodsOfClaims::read(const Claim& claim, const std::string& claim_namespace,
                                              const std::stop_token& stop) {
  TRY_ASSIGN(const std::vector<PodRef> pods, pods_of(claim, claim_namespace));
  if (pods.size() > kMaxPods) {
    return fail(ErrorCode::failed_precondition, std::to_string(pods.size()) + " pods may use the claim, but at most " +
                                                    std::to_string(kMaxPods) + " are examined");
  }
  Uses all;
  bool is_any = false;
  for (const PodRef& one : pods) {
    if (stop.stop_requested()) return fail(ErrorCode::unavailable, "the call was cancelled while pods were read");
    const Result<PodUse>& use = pod(claim_namespace, one.name);
    if (!use && use.error().code == ErrorCode::not_found) continue;
    if (!use) return fail(use.error());
    const bool is_it = one.uid.empty() ? uses(*use, claim.name) : use->uid == one.uid;
    if (!is_it || use->has_ended) continue;
    is_any = true;
    all.grace = std::max(all.grace, use->grace);
    for (const ContainerUse& container : use->containers) {
      all.containers.push_back({one.name + "/" + container.container, container.claims});
    }
  }
  if (!is_any) return fail(no_pod(claim));
  return all;
}

}  // namespace neuron::plugin::dra
