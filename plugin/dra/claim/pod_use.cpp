#include "plugin/dra/claim/pod_use.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "agent/kube/answers.h"
#include "plugin/dra/claim/json_fields.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxContainers = 1024;
constexpr std::size_t kMaxUses = 4096;

Error not_a_pod(const char* why) {
  return make_error(ErrorCode::data_corrupt, std::string("the API server's answer is not a pod: ") + why);
}

// The pod's own name of a claim -> the claim's name. Names of claims made from a template stand in the status.
std::map<std::string, std::string> claims_of(const json& pod) {
  std::map<std::string, std::string> names;
  for (const json& one : list_of(member(pod, "status"), "resourceClaimStatuses")) {
    const std::string claim = text_of(one, "resourceClaimName");
    if (!claim.empty()) names[text_of(one, "name")] = claim;
  }
  for (const json& one : list_of(member(pod, "spec"), "resourceClaims")) {
    std::string claim = text_of(one, "resourceClaimName");
    if (claim.empty()) claim = text_of(member(one, "source"), "resourceClaimName");  // before 1.31
    if (!claim.empty()) names[text_of(one, "name")] = claim;
  }
  return names;
}

// A use of one request, or of all with "", beside what the container uses of the claim already.
void add_use(ContainerUse& use, const std::string& claim, const std::string& request) {
  const auto [found, is_new] = use.claims.try_emplace(claim);
  const bool had_all = !is_new && found->second.empty();
  if (request.empty()) {
    found->second.clear();
  } else if (!had_all) {
    found->second.insert(request);
  }
}

// Extended resources that are served by a claim, which the scheduler has made for the pod.
void add_extended(const json& status, const std::string& container, ContainerUse& use) {
  const std::string claim = text_of(status, "resourceClaimName");
  if (claim.empty()) return;
  for (const json& mapping : list_of(status, "requestMappings")) {
    if (text_of(mapping, "containerName") != container) continue;
    const std::string request = text_of(mapping, "requestName");
    if (!request.empty()) add_use(use, claim, request);
  }
}

// Kubernetes' default where the field is missing.
std::chrono::seconds grace_of(const json& pod) {
  std::chrono::seconds grace{30};
  const auto read = [](const json& value, std::chrono::seconds other) {
    if (!value.is_number_integer()) return other;
    const auto seconds = value.get<std::int64_t>();
    return std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, kMaxGrace.count()));
  };
  grace = read(member(member(pod, "spec"), "terminationGracePeriodSeconds"), grace);
  return std::max(grace, read(member(member(pod, "metadata"), "deletionGracePeriodSeconds"), grace));
}

}  // namespace

Result<PodUse> parse_pod_use(std::string_view text) {
  if (text.size() > kMaxObjectBytes) return fail(not_a_pod("too long"));
  TRY_ASSIGN(const json pod, kube::parse_object(text, "the API server's answer"));
  const json& spec = member(pod, "spec");
  const json& status = member(pod, "status");
  PodUse use;
  use.uid = text_of(member(pod, "metadata"), "uid");
  if (use.uid.empty() || !spec.is_object()) return fail(not_a_pod("no uid or no spec"));
  use.grace = grace_of(pod);
  const std::string phase = text_of(status, "phase");
  use.has_ended = phase == "Succeeded" || phase == "Failed";

  const std::map<std::string, std::string> names = claims_of(pod);
  std::size_t containers = 0, uses = 0;
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& container : list_of(spec, list)) {
      ContainerUse one{text_of(container, "name"), {}};
      for (const json& claim : list_of(member(container, "resources"), "claims")) {
        const auto name = names.find(text_of(claim, "name"));
        if (name != names.end()) add_use(one, name->second, text_of(claim, "request"));
        if (++uses > kMaxUses) return fail(not_a_pod("its containers have too many claims"));
      }
      add_extended(member(status, "extendedResourceClaimStatus"), one.container, one);
      if (!one.claims.empty()) use.containers.push_back(std::move(one));
      if (++containers > kMaxContainers) return fail(not_a_pod("too many containers"));
    }
  }
  return use;
}

}  // namespace neuron::plugin::dra
