#include "tools/kubectl-neuron/items.h"

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/documents.h"
#include "tools/kubectl-neuron/parse.h"

namespace neuron::fleet {
namespace {

using kube::member;
using nlohmann::json;
using Found = json::parse_event_t;

constexpr int kMaxDepth = 64;
constexpr int kItemDepth = 2;  // of an object in the list at `items`
constexpr std::size_t kMaxContinue = std::size_t{8} << 10U;

// nlohmann's callback: says of each value, as it is read, whether it is kept. Objects of the list are used and dropped.
class Filter {
 public:
  Filter(const Keep& keep, const UseItem& use) : use_(use) { at_.push_back(&keep); }

  // `depth` is the number of open objects and lists around the value, or the key.
  bool operator()(int depth, Found event, json& value) {
    const auto place = static_cast<std::size_t>(depth);
    if (depth >= kMaxDepth) is_too_deep_ = true;
    if (is_too_deep_) return false;
    at_.resize(place + 2, nullptr);
    if (depth == kItemDepth && is_in_list_) return is_kept_item(event, value);
    const bool is_other = event == Found::object_start || (event == Found::value && !value.is_null());
    is_no_list_ = is_no_list_ || (depth == 1 && is_at_items_ && is_other);
    if (event == Found::array_start) at_[place + 1] = at_[place];
    if (event == Found::array_start && depth == 1) is_in_list_ = is_at_items_;
    if (event != Found::key) return true;
    const auto& name = value.get_ref<const std::string&>();
    if (depth == 1) is_at_items_ = name == "items";
    if (depth == 1) is_in_list_ = false;
    at_[place] = below(at_[place - 1], name);
    return at_[place] != nullptr;
  }
  [[nodiscard]] bool is_too_deep() const { return is_too_deep_; }
  [[nodiscard]] bool is_no_list() const { return is_no_list_; }  // `items` is something else

 private:
  bool is_kept_item(Found event, json& value) {
    if (event == Found::object_end) use_(value);
    return event == Found::object_start;
  }
  static const Keep* below(const Keep* keep, const std::string& name) {
    if (keep == nullptr || keep->members.empty()) return keep;
    const auto found = keep->members.find(name);
    return found == keep->members.end() ? nullptr : &found->second;
  }

  const UseItem& use_;
  std::vector<const Keep*> at_;  // by depth: what is kept of a value there; nullptr: nothing
  bool is_at_items_ = false;     // the last key of the page
  bool is_in_list_ = false;
  bool is_too_deep_ = false;
  bool is_no_list_ = false;
};

void add(Keep& keep, std::string_view path) {
  Keep* at = &keep;
  while (!path.empty()) at = &at->members[std::string(take_until(path, '.'))];
}

// Below "-" is nothing: of an object it is kept that it is there.
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
        "metadata.labels",
        "metadata.ownerReferences.kind",
        "metadata.ownerReferences.name",
        "spec.nodeName",
        "spec.schedulerName",
        "spec.priority",
        "spec.priorityClassName",
        "spec.schedulingGates",
        "spec.nodeSelector",
        "spec.affinity.nodeAffinity",
        "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.-",
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.labelSelector",
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.namespaces",
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.namespaceSelector.-",
        "spec.topologySpreadConstraints.whenUnsatisfiable",
        "spec.volumes.persistentVolumeClaim.-",
        "spec.volumes.ephemeral.-",
        "spec.workloadRef.-",
        "spec.schedulingGroup.-",
        "spec.tolerations",
        "spec.resourceClaims",
        "spec.overhead",
        "spec.resources",
        "spec.containers.name",
        "spec.containers.resources",
        "spec.initContainers.name",
        "spec.initContainers.resources",
        "spec.initContainers.restartPolicy",
        "spec.initContainers.ports.hostPort",
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
        "involvedObject.uid", "reason", "message", "lastTimestamp", "eventTime", "series", "count", "type"}},
  };
  return kPaths.at(kind);
}

Keep keep_of(Kind kind) {
  Keep keep;
  add(keep, "metadata.continue");
  for (const char* path : paths_of(kind)) add(keep.members["items"], path);
  return keep;
}

constexpr const char* kApp = "app.kubernetes.io/name";

// Arguments and images are those of the agents alone: those of others may hold secrets.
void cut_pod(json& pod) {
  const bool is_agent = kube::text_of(pod, {"metadata", "labels", kApp}).starts_with("neuron-agent");
  if (is_agent || !member(pod, "spec").is_object()) return;
  json& spec = pod["spec"];
  if (!spec.contains("containers") || !spec["containers"].is_array()) return;
  for (json& container : spec["containers"]) {
    if (!container.is_object()) continue;
    for (const char* name : {"args", "image"}) container.erase(name);
    json hosts = json::array();
    for (const json& port : kube::list_of(container, "ports")) {
      if (member(port, "hostPort").is_number()) hosts.push_back({{"hostPort", member(port, "hostPort")}});
    }
    container.erase("ports");
    if (!hosts.empty()) container["ports"] = std::move(hosts);
  }
}

bool is_object_or_absent(const json& value) {
  return value.is_null() || value.is_object();
}

// A list of objects, or absent.
bool is_list_or_absent(const json& value) {
  if (value.is_null()) return true;
  if (!value.is_array()) return false;
  for (const json& item : value) {
    if (!item.is_object()) return false;
  }
  return true;
}

bool is_pod_understood(const json& spec) {
  return is_list_or_absent(member(spec, "containers")) && is_list_or_absent(member(spec, "initContainers")) &&
         is_list_or_absent(member(spec, "resourceClaims"));
}

bool is_node_understood(const json& item) {
  const json& status = member(item, "status");
  return is_object_or_absent(member(status, "allocatable")) && is_object_or_absent(member(status, "capacity")) &&
         is_object_or_absent(member(member(item, "metadata"), "labels")) &&
         is_list_or_absent(member(member(item, "spec"), "taints"));
}

}  // namespace

Result<std::string> read_items(std::string_view page, const std::string& what, const Keep& keep, const UseItem& use) {
  Filter filter(keep, use);
  const json rest = json::parse(
      page, [&](int depth, Found event, json& value) { return filter(depth, event, value); }, false);
  if (filter.is_too_deep()) return fail(ErrorCode::data_corrupt, what + " is nested too deeply");
  if (filter.is_no_list()) return fail(ErrorCode::data_corrupt, what + " has no list of items");
  if (!rest.is_object()) return fail(ErrorCode::data_corrupt, what + " is not a JSON object");
  std::string next = kube::text_of(rest, {"metadata", "continue"});
  if (next.size() > kMaxContinue) return fail(ErrorCode::data_corrupt, what + " has an unusable continue token");
  return next;
}

Result<Page> kept_page(Kind kind, std::string_view body) {
  static const std::map<Kind, Keep> kKeeps = [] {
    std::map<Kind, Keep> all;
    for (const Kind one : kAllKinds) all.emplace(one, keep_of(one));
    return all;
  }();
  const std::string what = "the list of " + std::string(plural_of(kind));
  Page page;
  page.text = R"({"items":[)";
  TRY_ASSIGN(page.next, read_items(body, what, kKeeps.at(kind), [&](json& item) {
               if (kind == Kind::pods) cut_pod(item);
               if (page.items++ > 0) page.text += ',';
               page.text += item.dump(-1, ' ', false, json::error_handler_t::replace);
             }));
  page.text += "]}";
  page.text.shrink_to_fit();
  return page;
}

bool is_understood(Kind kind, const json& item) {
  const json& metadata = member(item, "metadata");
  if (!is_object_or_absent(metadata)) return false;
  if (kind == Kind::events) return item.is_object();
  // Everything that is listed has a name; what has none is no object.
  const json& space = member(metadata, "namespace");
  if (kube::text_of(metadata, "name").empty() || !(space.is_null() || space.is_string())) return false;
  const json& spec = member(item, "spec");
  if (!is_object_or_absent(spec) || !is_object_or_absent(member(item, "status"))) return false;
  if (kind == Kind::pods) return is_pod_understood(spec);
  return kind != Kind::nodes || is_node_understood(item);
}

std::string place_of(const json& item, std::size_t number) {
  const std::string name = kube::text_of(member(item, "metadata"), "name");
  return name.empty() ? "number " + std::to_string(number) : printable(name);
}

}  // namespace neuron::fleet
