#include "tools/kubectl-neuron/documents.h"

#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "tools/kubectl-neuron/items.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;

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

}  // namespace neuron::fleet
