#include "plugin/dra/claim/claim_request.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "agent/kube/answers.h"
#include "plugin/dra/slices/publisher.h"

namespace neuron::plugin::dra {
namespace {

using kube::is_true;
using kube::list_of;
using kube::member;
using kube::text_of;
using nlohmann::json;

constexpr const char* kWhat = "the API server's answer";
constexpr std::size_t kMaxResults = 4 * 32;
constexpr std::size_t kMaxConfigs = 4 * 32;
constexpr std::size_t kMaxConsumers = 4 * 256;
constexpr std::size_t kMaxTolerations = 64;
constexpr std::size_t kMaxContainers = 1024;
constexpr std::size_t kMaxUses = 4096;
constexpr std::string_view kGroup = "/apis/resource.k8s.io";
constexpr std::array<std::string_view, 3> kVersions{"v1", "v1beta2", "v1beta1"};  // the newest first

Error not_a(const char* object, const char* why) {
  return make_error(ErrorCode::data_corrupt, std::string(kWhat) + " is not a " + object + ": " + why);
}

void add_tolerations(const json& list, std::vector<Toleration>& tolerations) {
  constexpr std::size_t kMaxKey = 253 + 1 + 63;  // prefix, slash, name
  for (const json& one : list) {
    if (tolerations.size() >= kMaxTolerations) return;
    const std::string how = text_of(one, "operator");
    if (!one.is_object() || (!how.empty() && how != "Equal" && how != "Exists")) continue;
    Toleration toleration{text_of(one, "key", kMaxKey), how == "Exists", text_of(one, "value"), text_of(one, "effect")};
    if (std::ranges::find(tolerations, toleration) == tolerations.end()) {
      tolerations.push_back(std::move(toleration));
    }
  }
}

// The request, or alternative of it, that a result is for. v1beta1 has the fields of `exactly` in the request itself.
const json& request_of(const json& spec, const AllocationResult& result) {
  for (const json& request : list_of(member(spec, "devices"), "requests")) {
    if (text_of(request, "name") != result.request) continue;
    if (result.subrequest.empty()) {
      const json& exactly = member(request, "exactly");
      return exactly.is_object() ? exactly : request;
    }
    for (const json& alternative : list_of(request, "firstAvailable")) {
      if (text_of(alternative, "name") == result.subrequest) return alternative;
    }
  }
  return member(json(), "");
}

AllocationResult result_of(const json& spec, const json& one) {
  constexpr std::size_t kMaxRequestName = 2 * 63 + 1;  // two labels and a slash
  AllocationResult result;
  const std::string name = text_of(one, "request", kMaxRequestName);
  const std::size_t slash = name.find('/');
  result.request = name.substr(0, slash);
  if (slash != std::string::npos) result.subrequest = name.substr(slash + 1);
  result.pool = text_of(one, "pool");
  result.device = text_of(one, "device");
  result.admin_access = is_true(one, "adminAccess");
  if (const std::string share = text_of(one, "shareID"); !share.empty()) result.share_id = share;
  add_tolerations(list_of(one, "tolerations"), result.tolerations);
  const json& request = request_of(spec, result);
  add_tolerations(list_of(request, "tolerations"), result.tolerations);
  result.is_alone = request.is_object() && !member(member(request, "capacity"), "requests").contains("cores");
  const auto cores = kube::parse_quantity(text_of(member(one, "consumedCapacity"), "cores"));
  if (cores && std::in_range<std::uint8_t>(*cores)) result.cores = static_cast<int>(*cores);
  return result;
}

void add_consumers(const json& reserved, ResourceClaim& claim) {
  constexpr std::size_t kMaxShown = 128;  // bytes of a name that only messages show
  for (const json& one : reserved) {
    const std::string resource = text_of(one, "resource");
    if (resource == "pods" && text_of(one, "apiGroup").empty()) {
      claim.pods.push_back({text_of(one, "name"), text_of(one, "uid")});
    } else {
      claim.other_consumers.push_back(printable(resource + "/" + text_of(one, "name"), kMaxShown));
    }
  }
}

// The pod's own name of a claim -> the claim's name. For a claim that is made from a template it is in the status.
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
void add_extended(const json& status, ContainerUse& use) {
  const std::string claim = text_of(status, "resourceClaimName");
  if (claim.empty()) return;
  for (const json& mapping : list_of(status, "requestMappings")) {
    if (text_of(mapping, "containerName") != use.name) continue;
    const std::string request = text_of(mapping, "requestName");
    if (!request.empty()) add_use(use, claim, request);
  }
}

// Kubernetes' default where the field is missing.
std::chrono::seconds grace_of(const json& pod) {
  const auto read = [](const json& value, std::chrono::seconds other) {
    if (!value.is_number_integer()) return other;
    return std::chrono::seconds(std::clamp<std::int64_t>(value.get<std::int64_t>(), 0, kMaxGrace.count()));
  };
  const auto grace = read(member(member(pod, "spec"), "terminationGracePeriodSeconds"), PodUse().grace);
  return std::max(grace, read(member(member(pod, "metadata"), "deletionGracePeriodSeconds"), grace));
}

// A name is part of a path.
Result<void> check_name(std::string_view name) {
  if (is_dns_subdomain(name)) return {};
  return fail(ErrorCode::invalid_argument, RefusalReason::bad_request,
              "\"" + printable(name, 64) + "\" is not a valid object name");
}

Result<void> check_claim(const ClaimRef& claim) {
  const auto& [claim_namespace, name, uid] = claim;
  const auto refuse = [](const char* what, const std::string& text) {
    return fail(ErrorCode::invalid_argument, RefusalReason::bad_request,
                std::string(what) + " \"" + printable(text) + "\" is not a valid Kubernetes identifier");
  };
  if (!is_object_uid(uid)) return refuse("uid of a claim", uid);
  if (!is_dns_label(claim_namespace)) return refuse("namespace of a claim", claim_namespace);
  if (!is_dns_subdomain(name)) return refuse("name of a claim", name);
  return {};
}

// The answers of `ask`, which gets the valid claims, each uid once; an error for those that it leaves out, too.
template <typename Answer, typename Ask, typename Refuse>
Result<std::map<std::string, Answer>> ask_for(const std::vector<ClaimRef>& claims, const Ask& ask,
                                              const Refuse& refuse) {
  if (claims.size() > kMostClaims) {
    return fail(ErrorCode::invalid_argument, "more than " + std::to_string(kMostClaims) + " claims in one call");
  }
  std::map<std::string, Answer> answers;
  std::vector<ClaimRef> valid;
  for (const ClaimRef& claim : claims) {
    if (answers.contains(claim.uid)) continue;
    const auto checked = check_claim(claim);
    answers[claim.uid] =
        refuse(checked ? make_error(ErrorCode::internal, "the driver did not answer for this claim; try again")
                       : checked.error());
    if (checked) valid.push_back(claim);
  }
  if (valid.empty()) return answers;
  for (auto& [uid, answer] : ask(valid)) {
    const auto asked = answers.find(uid);
    if (asked != answers.end()) asked->second = std::move(answer);
  }
  return answers;
}

}  // namespace

bool is_object_uid(std::string_view text) {
  constexpr std::size_t kMaxBytes = 64;  // the API server gives 36
  constexpr const char* kBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
  return !text.empty() && text.size() <= kMaxBytes && text.find_first_not_of(kBytes) == std::string_view::npos;
}

Result<std::map<std::string, PrepareAnswer>> prepare_all(ClaimCalls& calls, const std::vector<ClaimRef>& claims,
                                                         const std::stop_token& stop) {
  return ask_for<PrepareAnswer>(
      claims, [&](const auto& valid) { return calls.prepare(valid, stop); }, refused);
}

Result<std::map<std::string, std::string>> unprepare_all(ClaimCalls& calls, const std::vector<ClaimRef>& claims) {
  return ask_for<std::string>(
      claims, [&](const auto& valid) { return calls.unprepare(valid); }, std::mem_fn(&Error::message));
}

std::optional<OpaqueConfig> opaque_config(const json& entry, std::string_view driver) {
  const json& opaque = member(entry, "opaque");
  if (text_of(opaque, "driver") != driver) return std::nullopt;
  OpaqueConfig config{text_of(entry, "source") == "FromClass", {}, ""};
  for (const json& request : list_of(entry, "requests")) {
    if (request.is_string() && config.requests.size() < kMaxResults) config.requests.push_back(request);
  }
  config.parameters = member(opaque, "parameters").dump(-1, ' ', false, json::error_handler_t::replace);
  return config;
}

bool tolerates(const std::vector<Toleration>& tolerations, std::string_view key, std::string_view value,
               std::string_view effect) {
  return std::ranges::any_of(tolerations, [&](const Toleration& one) {
    if (!one.effect.empty() && one.effect != effect) return false;
    if (one.key.empty()) return one.exists;
    return one.key == key && (one.exists || one.value == value);
  });
}

Result<ResourceClaim> parse_resource_claim(std::string_view text, std::string_view driver) {
  if (text.size() > kube::kMaxObjectBytes) return fail(not_a("ResourceClaim", "too long"));
  TRY_ASSIGN(const json object, kube::parse_object(text, kWhat));
  const json& metadata = member(object, "metadata");
  if (!metadata.is_object()) return fail(not_a("ResourceClaim", "no metadata"));
  ResourceClaim claim;
  claim.claim_namespace = text_of(metadata, "namespace");
  claim.name = text_of(metadata, "name");
  claim.uid = text_of(metadata, "uid");
  claim.resource_version = text_of(metadata, "resourceVersion");
  if (claim.name.empty() || claim.uid.empty()) return fail(not_a("ResourceClaim", "no name or uid"));

  const json& status = member(object, "status");
  const json& devices = member(member(status, "allocation"), "devices");
  claim.is_allocated = member(status, "allocation").is_object();
  const json& results = list_of(devices, "results");
  const json& configs = list_of(devices, "config");
  const json& reserved = list_of(status, "reservedFor");
  if (results.size() > kMaxResults || configs.size() > kMaxConfigs || reserved.size() > kMaxConsumers) {
    return fail(not_a("ResourceClaim", "more results, configurations or consumers than the API allows"));
  }
  for (const json& one : results) {
    if (text_of(one, "driver") == driver) claim.results.push_back(result_of(member(object, "spec"), one));
  }
  for (const json& one : configs) {
    if (auto config = opaque_config(one, driver)) claim.configs.push_back(*std::move(config));
  }
  std::stable_partition(claim.configs.begin(), claim.configs.end(),
                        [](const OpaqueConfig& config) { return config.from_class; });
  add_consumers(reserved, claim);
  return claim;
}

Result<PodUse> parse_pod_use(std::string_view text) {
  if (text.size() > kube::kMaxObjectBytes) return fail(not_a("pod", "too long"));
  TRY_ASSIGN(const json pod, kube::parse_object(text, kWhat));
  const json& spec = member(pod, "spec");
  const json& status = member(pod, "status");
  PodUse use;
  use.uid = text_of(member(pod, "metadata"), "uid");
  if (use.uid.empty() || !spec.is_object()) return fail(not_a("pod", "no uid or no spec"));
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
        if (++uses > kMaxUses) return fail(not_a("pod", "its containers have too many claims"));
      }
      add_extended(member(status, "extendedResourceClaimStatus"), one);
      if (!one.claims.empty()) use.containers.push_back(std::move(one));
      if (++containers > kMaxContainers) return fail(not_a("pod", "too many containers"));
    }
  }
  return use;
}

Result<std::string> ClaimReader::get(const std::string& path) {
  const kube::ApiCall call{kube::Method::get, path};
  TRY_ASSIGN(kube::ApiReply reply, api_.call(call));
  return kube::body_of(std::move(reply), call);
}

// The newest version that both the server and this driver have; "" when the server does not say.
std::string ClaimReader::ask_version() {
  const auto answer = get(std::string(kGroup));
  if (!answer || answer->size() > kube::kMaxObjectBytes) return "";
  const auto group = kube::parse_object(*answer, kWhat);
  if (!group) return "";
  const json& served = list_of(*group, "versions");
  for (const std::string_view version : kVersions) {
    if (std::any_of(served.begin(), served.end(),
                    [&](const json& one) { return text_of(one, "version") == version; })) {
      return std::string(version);
    }
  }
  return "";
}

Result<ResourceClaim> ClaimReader::read_claim(const std::string& claim_namespace, const std::string& name) {
  TRY(check_name(claim_namespace));
  TRY(check_name(name));
  const auto path_in = [&](const std::string& version) {
    return std::string(kGroup) + "/" + version + "/namespaces/" + claim_namespace + "/resourceclaims/" + name;
  };
  std::string version;
  {
    const MutexLock lock(mutex_);
    version = version_;
  }
  const std::string first = version.empty() ? std::string(kVersions[0]) : version;
  kube::ApiCall call{kube::Method::get, path_in(first)};
  TRY_ASSIGN(kube::ApiReply reply, api_.call(call));
  // Not there, or not in this version: the server may have been replaced by another one since.
  if (reply.status == 404) {
    version = ask_version();
    if (!version.empty() && version != first) {
      call.path = path_in(version);
      TRY_ASSIGN(reply, api_.call(call));
    }
  }
  TRY_ASSIGN(const std::string answer, kube::body_of(std::move(reply), call));
  {
    const MutexLock lock(mutex_);
    version_ = version.empty() ? first : version;
  }
  return parse_resource_claim(answer, driver_);
}

Result<PodUse> ClaimReader::read_pod(const std::string& pod_namespace, const std::string& name) {
  TRY(check_name(pod_namespace));
  TRY(check_name(name));
  TRY_ASSIGN(const std::string answer, get("/api/v1/namespaces/" + pod_namespace + "/pods/" + name));
  return parse_pod_use(answer);
}

// Of a group that the claim is reserved for these are among the pods of its namespace that the kubelet has: all pods
// that use a device of this node are on it, and the kubelet has a pod before it prepares it.
Result<std::vector<PodRef>> PodsOfClaims::pods_of(const ResourceClaim& claim, const std::string& claim_namespace) {
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

Result<PodsOfClaims::Uses> PodsOfClaims::read(const ResourceClaim& claim, const std::string& claim_namespace,
                                              const std::stop_token& stop) {
  TRY_ASSIGN(const std::vector<PodRef> pods, pods_of(claim, claim_namespace));
  if (pods.size() > kMaxPods) {
    return fail(ErrorCode::failed_precondition, std::to_string(pods.size()) + " pods may use the claim, but at most " +
                                                    std::to_string(kMaxPods) + " are examined");
  }
  Uses all;
  bool is_any = false;
  for (const PodRef& one : pods) {
    if (stop.stop_requested())
      return fail(ErrorCode::unavailable, RefusalReason::interrupted, "the call was cancelled while pods were read");
    const std::pair key(claim_namespace, one.name);
    auto known = pods_.find(key);
    if (known == pods_.end()) known = pods_.emplace(key, reader_.read_pod(claim_namespace, one.name)).first;
    const Result<PodUse>& use = known->second;
    if (!use && use.error().code == ErrorCode::not_found) continue;
    if (!use) return fail(use.error());
    const bool uses =
        one.uid.empty()
            ? std::ranges::any_of(use->containers, [&](const auto& of) { return of.claims.contains(claim.name); })
            : use->uid == one.uid;
    if (!uses || use->has_ended) continue;
    is_any = true;
    all.grace = std::max(all.grace, use->grace);
    for (const ContainerUse& container : use->containers) {
      all.containers.push_back({one.name + "/" + container.name, container.claims});
    }
  }
  if (is_any) return all;
  return fail(ErrorCode::failed_precondition,
              claim.other_consumers.empty()
                  ? "no pod found that the claim is reserved for"
                  : "the claim is reserved for " + claim.other_consumers.front() + ", but no pod on this node uses it");
}

}  // namespace neuron::plugin::dra
