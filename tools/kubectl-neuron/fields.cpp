#include "tools/kubectl-neuron/documents.h"

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxContinue = std::size_t{8} << 10U;

// Members of an object by name; without any, everything below is kept. Lists are looked through.
struct Keep {
  std::map<std::string, Keep, std::less<>> members;
};

void add(Keep& keep, std::string_view path) {
  Keep* at = &keep;
  while (!path.empty()) at = &at->members[std::string(take_until(path, '.'))];
}

const std::vector<const char*>& paths_of(Kind kind) {
  static const std::map<Kind, std::vector<const char*>> kPaths = {
      {Kind::nodes,
       {"metadata.name", "metadata.creationTimestamp", "metadata.labels", "spec.taints", "spec.unschedulable",
        "status.allocatable", "status.capacity", "status.conditions.type", "status.conditions.status",
        "status.conditions.reason", "status.conditions.message", "status.nodeInfo.kubeletVersion"}},
      {Kind::pods,
       {"metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "metadata.creationTimestamp",
        "metadata.deletionTimestamp",
        "metadata.labels.app.kubernetes.io/name",
        "metadata.ownerReferences.kind",
        "metadata.ownerReferences.name",
        "spec.nodeName",
        "spec.schedulerName",
        "spec.schedulingGates",
        "spec.nodeSelector",
        "spec.affinity.nodeAffinity",
        "spec.tolerations",
        "spec.resourceClaims",
        "spec.overhead",
        "spec.resources",
        "spec.containers.name",
        "spec.containers.resources",
        "spec.initContainers.name",
        "spec.initContainers.resources",
        "spec.initContainers.restartPolicy",
        "spec.containers.ports",
        "spec.containers.args",
        "spec.containers.image",
        "status.phase",
        "status.reason",
        "status.message",
        "status.conditions.type",
        "status.conditions.status",
        "status.conditions.reason",
        "status.conditions.message",
        "status.conditions.lastTransitionTime",
        "status.initContainerStatuses.name",
        "status.initContainerStatuses.state.waiting",
        "status.containerStatuses.name",
        "status.containerStatuses.state.waiting",
        "status.resourceClaimStatuses",
        "status.extendedResourceClaimStatus"}},
      {Kind::slices, {"metadata.name", "spec"}},
      {Kind::claims,
       {"metadata.name", "metadata.namespace", "metadata.uid", "spec.devices.requests", "spec.devices.constraints",
        "status.allocation.devices.results", "status.reservedFor"}},
      {Kind::claim_templates,
       {"metadata.name", "metadata.namespace", "spec.spec.devices.requests", "spec.spec.devices.constraints"}},
      {Kind::device_classes, {"metadata.name", "spec.selectors", "spec.extendedResourceName"}},
      {Kind::events,
       {"metadata.creationTimestamp", "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
        "reason", "message", "lastTimestamp", "eventTime", "series", "count", "type"}},
  };
  return kPaths.at(kind);
}

// A name with dots in a path above would be cut.
Keep keep_of(Kind kind) {
  Keep keep;
  add(keep, "metadata.continue");
  Keep& item = keep.members["items"];
  for (const char* path : paths_of(kind)) {
    constexpr std::string_view kLabel = "app.kubernetes.io/name";
    const std::string_view text(path);
    if (text.ends_with(kLabel)) {
      item.members["metadata"].members["labels"].members[std::string(kLabel)];
    } else {
      add(item, text);
    }
  }
  return keep;
}

// nlohmann's callback: says of each value, as it is read, whether it is kept.
class Filter {
 public:
  explicit Filter(const Keep& keep) { at_.push_back(&keep); }

  // `depth` is the number of open objects and lists around the value, or the key.
  bool operator()(int depth, json::parse_event_t event, json& value) {
    const auto place = static_cast<std::size_t>(depth);
    if (depth >= kMaxDepth) is_too_deep_ = true;
    if (is_too_deep_) return false;
    at_.resize(place + 2, nullptr);
    if (event == json::parse_event_t::array_start) at_[place + 1] = at_[place];
    if (event == json::parse_event_t::key) {
      at_[place] = below(at_[place - 1], value.get_ref<const std::string&>());
      return at_[place] != nullptr;
    }
    return true;
  }
  [[nodiscard]] bool is_too_deep() const { return is_too_deep_; }

 private:
  static const Keep* below(const Keep* keep, const std::string& name) {
    if (keep == nullptr || keep->members.empty()) return keep;
    const auto found = keep->members.find(name);
    return found == keep->members.end() ? nullptr : &found->second;
  }

  std::vector<const Keep*> at_;  // by depth: what is kept of a value there; nullptr: nothing
  bool is_too_deep_ = false;
};

bool is_agent(const json& pod) {
  return kube::text_of(pod, {"metadata", "labels", "app.kubernetes.io/name"}).starts_with("neuron-agent");
}

// Arguments and images are those of the agents alone: those of others may hold secrets.
void cut_pod(json& pod) {
  if (is_agent(pod) || !pod.is_object() || !pod.contains("spec")) return;
  json& spec = pod["spec"];
  if (!spec.is_object() || !spec.contains("containers") || !spec["containers"].is_array()) return;
  for (json& container : spec["containers"]) {
    if (!container.is_object()) continue;
    for (const char* name : {"args", "image", "ports"}) container.erase(name);
  }
}

}  // namespace

Result<Page> kept_page(Kind kind, std::string_view body) {
  static const std::map<Kind, Keep> kKeeps = [] {
    std::map<Kind, Keep> all;
    for (const Kind one : kAllKinds) all.emplace(one, keep_of(one));
    return all;
  }();
  const std::string what = "the list of " + std::string(plural_of(kind));
  Filter filter(kKeeps.at(kind));
  json list = json::parse(
      body, [&](int depth, json::parse_event_t event, json& value) { return filter(depth, event, value); }, false);
  if (filter.is_too_deep()) return fail(ErrorCode::data_corrupt, what + " is nested too deeply");
  if (!list.is_object()) return fail(ErrorCode::data_corrupt, what + " is not a JSON object");
  if (list.contains("items") && !list["items"].is_null() && !list["items"].is_array()) {
    return fail(ErrorCode::data_corrupt, what + " has no list of items");
  }
  Page page;
  page.next = kube::text_of(list, {"metadata", "continue"});
  if (page.next.size() > kMaxContinue) return fail(ErrorCode::data_corrupt, what + " has an unusable continue token");
  json kept = {{"items", json::array()}};
  if (list.contains("items") && list["items"].is_array()) kept["items"] = std::move(list["items"]);
  for (json& item : kept["items"]) {
    if (kind == Kind::pods) cut_pod(item);
  }
  page.items = kept["items"].size();
  page.text = kept.dump(-1, ' ', false, json::error_handler_t::replace);
  return page;
}

}  // namespace neuron::fleet
