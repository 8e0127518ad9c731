#include <algorithm>
#include <limits>
#include <string_view>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "agent/model/resource.h"
#include "tools/kubectl-neuron/others.h"
#include "tools/kubectl-neuron/parse.h"

namespace neuron::fleet {
namespace {

using kube::is_true;
using kube::list_of;
using kube::member;
using kube::text_of;
using nlohmann::json;

constexpr std::size_t kMostEntries = 1024;  // of a list or map in one object

std::string message_of(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string()) return "";
  return value.get_ref<const std::string&>().substr(0, kLongestText);
}

std::vector<std::string> texts_of(const json& list) {
  std::vector<std::string> texts;
  for (const json& value : list) {
    if (texts.size() >= kMostEntries || !value.is_string()) continue;
    texts.push_back(value.get_ref<const std::string&>().substr(0, kLongestText));
  }
  return texts;
}

Taint taint_of(const json& object) {
  return {text_of(object, "key", 512), text_of(object, "value"), text_of(object, "effect")};
}

const json* condition(const json& object, std::string_view type) {
  for (const json& one : list_of(member(object, "status"), "conditions")) {
    if (text_of(one, "type") == type) return &one;
  }
  return nullptr;
}

void add_rules(std::vector<LabelRule>& rules, const json& list, bool is_field) {
  for (const json& one : list) {
    if (rules.size() >= kMostEntries) return;
    rules.push_back({text_of(one, "key", 512), text_of(one, "operator"), texts_of(list_of(one, "values")), is_field});
  }
}

std::vector<std::vector<LabelRule>> affinity_of(const json& spec) {
  std::vector<std::vector<LabelRule>> terms;
  const json* required =
      kube::member_of(spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"});
  if (required == nullptr) return terms;
  for (const json& term : list_of(*required, "nodeSelectorTerms")) {
    std::vector<LabelRule> rules;
    add_rules(rules, list_of(term, "matchExpressions"), false);
    add_rules(rules, list_of(term, "matchFields"), true);
    if (terms.size() < kMostEntries) terms.push_back(std::move(rules));
  }
  return terms;
}

Container container_of(const json& object, const std::set<std::string>& more, bool is_init) {
  Container container;
  container.name = text_of(object, "name");
  container.init = is_init;
  container.sidecar = is_init && text_of(object, "restartPolicy") == "Always";
  const json& resources = member(object, "resources");
  container.requests = amounts_of(member(resources, "limits"), more);
  for (const auto& [name, amount] : amounts_of(member(resources, "requests"), more)) {
    container.requests[name] = amount;
  }
  std::erase_if(container.requests, [](const auto& entry) { return entry.second == 0; });
  for (const json& claim : list_of(resources, "claims")) {
    if (container.claims.size() < kMostEntries) container.claims.push_back(text_of(claim, "name"));
  }
  return container;
}

void read_claims(Pod& pod, const json& object) {
  for (const json& one : list_of(member(object, "spec"), "resourceClaims")) {
    if (pod.claims.size() >= kMostEntries) return;
    pod.claims.push_back(
        {text_of(one, "name"), text_of(one, "resourceClaimName"), text_of(one, "resourceClaimTemplateName")});
  }
  for (const json& one : list_of(member(object, "status"), "resourceClaimStatuses")) {
    const std::string name = text_of(one, "name");
    const auto claim =
        std::ranges::find_if(pod.claims, [&](const PodClaim& candidate) { return candidate.name == name; });
    if (claim != pod.claims.end() && claim->claim.empty()) claim->claim = text_of(one, "resourceClaimName");
  }
  // The claim that the scheduler makes for extended resources (KEP-5004) is in no container's list.
  const json* extended = kube::member_of(object, {"status", "extendedResourceClaimStatus", "resourceClaimName"});
  if (extended != nullptr && extended->is_string()) pod.claims.push_back({"", extended->get<std::string>(), ""});
}

void read_waits(Pod& pod, const json& status) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json& one : list_of(status, list)) {
      const json& wait = member(member(one, "state"), "waiting");
      const bool is_other = !wait.is_object() || pod.waits.size() >= kMostEntries;
      if (!is_other) pod.waits.push_back({text_of(one, "name"), text_of(wait, "reason"), message_of(wait, "message")});
    }
  }
}

void read_placement(Pod& pod, const json& spec) {
  pod.node = text_of(spec, "nodeName");
  pod.scheduler = text_of(spec, "schedulerName");
  pod.node_selector = labels_of(member(spec, "nodeSelector"));
  pod.node_affinity = affinity_of(spec);
  for (const json& gate : list_of(spec, "schedulingGates")) {
    if (pod.gates.size() < kMostEntries) pod.gates.push_back(text_of(gate, "name", 512));
  }
  for (const json& one : list_of(spec, "tolerations")) {
    Toleration toleration{text_of(one, "key", 512), text_of(one, "operator"), text_of(one, "value"),
                          text_of(one, "effect")};
    if (toleration.op.empty()) toleration.op = "Equal";
    if (pod.tolerations.size() < kMostEntries) pod.tolerations.push_back(std::move(toleration));
  }
}

}  // namespace

Labels labels_of(const json& object) {
  Labels labels;
  if (!object.is_object()) return labels;
  for (const auto& [name, value] : object.items()) {
    if (labels.size() >= kMostEntries || name.size() > kLongestText || !value.is_string()) continue;
    labels[name] = value.get_ref<const std::string&>().substr(0, kLongestText);
  }
  return labels;
}

Amounts amounts_of(const json& object, const std::set<std::string>& more) {
  Amounts amounts;
  if (!object.is_object()) return amounts;
  for (const auto& [name, value] : object.items()) {
    if (!model::parse_resource(name) && !more.contains(name)) continue;
    if (value.is_number_unsigned()) {
      amounts[name] = static_cast<std::int64_t>(
          std::min<std::uint64_t>(value.get<std::uint64_t>(), std::numeric_limits<std::int32_t>::max()));
    } else if (value.is_string()) {
      // No node has more than a few thousand; the bound keeps sums from overflowing.
      const auto amount = kube::parse_quantity(value.get_ref<const std::string&>());
      if (amount && *amount >= 0)
        amounts[name] = std::min<std::int64_t>(*amount, std::numeric_limits<std::int32_t>::max());
    }
  }
  return amounts;
}

Node node_of(const json& object, const std::set<std::string>& more) {
  Node node;
  const json& metadata = member(object, "metadata");
  const json& spec = member(object, "spec");
  node.name = text_of(metadata, "name");
  node.created = text_of(metadata, "creationTimestamp");
  node.labels = labels_of(member(metadata, "labels"));
  for (const json& one : list_of(spec, "taints")) {
    if (node.taints.size() < kMostEntries) node.taints.push_back(taint_of(one));
  }
  node.unschedulable = is_true(spec, "unschedulable");
  const json* ready = condition(object, "Ready");
  const std::string status = ready == nullptr ? "" : text_of(*ready, "status");
  if (status == "True" || status == "False") node.ready = status == "True";
  node.allocatable = amounts_of(member(member(object, "status"), "allocatable"), more);
  node.capacity = amounts_of(member(member(object, "status"), "capacity"), more);
  node.others = others_of(member(member(object, "status"), "allocatable"), more);
  const auto type = node.labels.find("node.kubernetes.io/instance-type");
  if (type != node.labels.end()) node.instance_type = type->second;
  return node;
}

Pod pod_of(const json& object, const std::set<std::string>& more) {
  Pod pod;
  const json& metadata = member(object, "metadata");
  const json& spec = member(object, "spec");
  const json& status = member(object, "status");
  pod.pod_namespace = text_of(metadata, "namespace");
  pod.name = text_of(metadata, "name");
  pod.uid = text_of(metadata, "uid");
  pod.created = text_of(metadata, "creationTimestamp");
  pod.deleting = member(metadata, "deletionTimestamp").is_string();
  pod.phase = text_of(status, "phase");
  pod.reason = text_of(status, "reason");
  pod.message = message_of(status, "message");
  const json* scheduled = condition(object, "PodScheduled");
  if (scheduled != nullptr && text_of(*scheduled, "status") == "False") {
    pod.scheduled_reason = text_of(*scheduled, "reason");
    pod.scheduled_message = message_of(*scheduled, "message");
  }
  read_placement(pod, spec);
  for (const bool is_init : {true, false}) {
    for (const json& one : list_of(spec, is_init ? "initContainers" : "containers")) {
      if (pod.containers.size() < kMostEntries) pod.containers.push_back(container_of(one, more, is_init));
    }
  }
  read_claims(pod, object);
  read_waits(pod, status);
  pod.others = others_of_pod(object, more);
  return pod;
}

Event event_of(const json& object) {
  Event event;
  const json& involved = member(object, "involvedObject");
  event.object_kind = text_of(involved, "kind");
  event.object_namespace = text_of(involved, "namespace");
  event.object_name = text_of(involved, "name");
  event.reason = text_of(object, "reason");
  event.message = message_of(object, "message");
  const json& series = member(object, "series");
  for (const std::string& time :
       {text_of(series, "lastObservedTime"), text_of(object, "lastTimestamp"), text_of(object, "eventTime"),
        text_of(member(object, "metadata"), "creationTimestamp")}) {
    if (event.time.empty()) event.time = time;
  }
  const json& count = member(series, "count").is_null() ? member(object, "count") : member(series, "count");
  if (count.is_number_integer()) event.count = std::max<std::int64_t>(1, count.get<std::int64_t>());
  return event;
}

}  // namespace neuron::fleet
