#include <algorithm>
#include <string_view>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "agent/model/resource.h"
#include "tools/kubectl-neuron/parse.h"

namespace neuron::fleet {
namespace {

using kube::is_true;
using kube::list_of;
using kube::member;
using kube::text_of;
using nlohmann::json;

constexpr std::size_t kMostEntries = 1024;  // of a list or map in one object
constexpr std::int64_t kMostThousandths = std::int64_t{1} << 60U;

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

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

// A term without labelSelector is of no pod.
std::vector<PodSelector> anti_affinity_of(const json& spec) {
  std::vector<PodSelector> all;
  for (const json& term : list_of(member(member(spec, "affinity"), "podAntiAffinity"), kRequired)) {
    const json& labels = member(term, "labelSelector");
    if (!labels.is_object() || all.size() >= kMostEntries) continue;
    PodSelector& one = all.emplace_back();
    one.namespaces = texts_of(list_of(term, "namespaces"));
    one.any_namespace = member(term, "namespaceSelector").is_object();
    for (const auto& [key, value] : labels_of(member(labels, "matchLabels")))
      one.rules.push_back({key, "In", {value}, false});
    add_rules(one.rules, list_of(labels, "matchExpressions"), false);
  }
  return all;
}

using ReadAmounts = Amounts (*)(const json& object, const std::set<std::string>& more);

Container container_of(const json& object, const std::set<std::string>& more, bool is_init, ReadAmounts read) {
  Container container;
  container.name = text_of(object, "name");
  container.init = is_init;
  container.sidecar = is_init && text_of(object, "restartPolicy") == "Always";
  const json& resources = member(object, "resources");
  container.requests = read(member(resources, "limits"), more);
  for (const auto& [name, amount] : read(member(resources, "requests"), more)) {
    container.requests[name] = amount;
  }
  std::erase_if(container.requests, [](const auto& entry) { return entry.second == 0; });
  for (const json& claim : list_of(resources, "claims")) {
    if (container.claims.size() < kMostEntries) container.claims.push_back(text_of(claim, "name"));
  }
  return container;
}

std::vector<Container> containers_of(const json& spec, const std::set<std::string>& more, ReadAmounts read) {
  std::vector<Container> all;
  for (const bool is_init : {true, false}) {
    for (const json& one : list_of(spec, is_init ? "initContainers" : "containers")) {
      if (all.size() < kMostEntries) all.push_back(container_of(one, more, is_init, read));
    }
  }
  return all;
}

// What the pod as a whole asks for replaces the sum of its containers; its runtime's overhead comes on top.
Amounts general_requests(const json& spec, const std::set<std::string>& more) {
  Pod sum;
  sum.containers = containers_of(spec, more, general_of);
  Amounts all = scheduled_amounts(sum);
  const json& own = member(spec, "resources");
  all.merge(general_of(member(own, "limits"), more));
  for (const auto& [name, amount] : general_of(member(own, "requests"), more)) all[name] = amount;
  for (const auto& [name, amount] : general_of(member(spec, "overhead"), more)) {
    all[name] = std::min(all[name], kMostThousandths) + amount;
  }
  std::erase_if(all, [](const auto& entry) { return entry.second == 0; });
  return all;
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

namespace {

std::optional<std::int64_t> units_in(const json& value) {
  if (value.is_number_unsigned())
    return static_cast<std::int64_t>(std::min<std::uint64_t>(value.get<std::uint64_t>(), kMostUnits));
  const auto amount = value.is_string() ? kube::parse_quantity(value.get_ref<const std::string&>()) : std::nullopt;
  return amount && *amount >= 0 ? std::optional(std::min(*amount, kMostUnits)) : std::nullopt;
}

bool are_readable(const json& amounts, const std::set<std::string>& more, std::int64_t most = kMostUnits) {
  if (!amounts.is_object()) return true;
  for (const auto& [name, value] : amounts.items()) {
    const bool counts = model::parse_resource(name) || more.contains(name);
    if (counts ? units_in(value).value_or(most + 1) > most : !thousandths_of(value)) return false;
  }
  return true;
}

}  // namespace

Amounts amounts_of(const json& object, const std::set<std::string>& more) {
  Amounts amounts;
  if (!object.is_object()) return amounts;
  for (const auto& [name, value] : object.items()) {
    if (!model::parse_resource(name) && !more.contains(name)) continue;
    if (const auto amount = units_in(value)) amounts[name] = *amount;
  }
  return amounts;
}

bool has_readable_amounts(Kind kind, const json& item, const std::set<std::string>& more) {
  const auto are_both = [&](const json& lists, const char* one, const char* other, std::int64_t most) {
    return are_readable(member(lists, one), more, most) && are_readable(member(lists, other), more, most);
  };
  if (kind == Kind::nodes) return are_both(member(item, "status"), "capacity", "allocatable", kMostUnitsOfNode);
  if (kind != Kind::pods) return true;
  const json& spec = member(item, "spec");
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& one : list_of(spec, list)) {
      if (!are_both(member(one, "resources"), "limits", "requests", kMostUnits)) return false;
    }
  }
  return are_both(member(spec, "resources"), "limits", "requests", kMostUnits) &&
         are_readable(member(spec, "overhead"), more);
}

std::optional<std::int64_t> thousandths_of(const json& quantity) {
  if (!quantity.is_string() && !quantity.is_number()) return std::nullopt;
  const auto amount = kube::parse_thousandths(quantity.is_string() ? quantity.get<std::string>() : quantity.dump());
  return amount && *amount >= 0 ? std::optional(std::min(*amount, kMostThousandths)) : std::nullopt;
}

Amounts general_of(const json& object, const std::set<std::string>& more) {
  Amounts amounts;
  if (!object.is_object()) return amounts;
  for (const auto& [name, value] : object.items()) {
    if (amounts.size() >= kMostEntries || name.size() > 512) break;
    if (model::parse_resource(name) || more.contains(name)) continue;
    if (const auto amount = thousandths_of(value)) amounts[name] = *amount;
  }
  return amounts;
}

namespace {

bool has_host_ports(const json& spec) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const json& container : list_of(spec, list)) {
      for (const json& port : list_of(container, "ports")) {
        const json& number = member(port, "hostPort");
        if ((number.is_number_integer() && number != 0) || is_true(spec, "hostNetwork")) return true;
      }
    }
  }
  return false;
}

bool has_volumes(const json& spec) {
  return std::ranges::any_of(list_of(spec, "volumes"), [](const json& one) {
    return member(one, "persistentVolumeClaim").is_object() || member(one, "ephemeral").is_object();
  });
}

bool must_spread(const json& spec) {
  return std::ranges::any_of(list_of(spec, "topologySpreadConstraints"),
                             [](const json& one) { return text_of(one, "whenUnsatisfiable") != "ScheduleAnyway"; });
}

}  // namespace

std::set<std::string> rules_not_counted(const json& spec) {
  const json& affinity = member(spec, "affinity");
  const json& priority = member(spec, "priority");
  const std::pair<bool, const char*> rules[] = {
      {!list_of(member(affinity, "podAffinity"), kRequired).empty(), "pod affinity"},
      {!list_of(member(affinity, "podAntiAffinity"), kRequired).empty(), "pod anti-affinity"},
      {must_spread(spec), "topology spread"},
      {has_host_ports(spec), "host ports"},
      {has_volumes(spec), "persistent volumes"},
      {!text_of(spec, "runtimeClassName").empty(), "runtime class"},
      {!text_of(spec, "priorityClassName").empty() || (priority.is_number() && priority != 0), "priority"},
      {!text_of(spec, "nodeName").empty(), "nodeName"},
      {member(spec, "workloadRef").is_object() || member(spec, "schedulingGroup").is_object(), "gang scheduling"}};
  std::set<std::string> all;
  for (const auto& [is_there, name] : rules) {
    if (is_there) all.insert(name);
  }
  return all;
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
  node.general = general_of(member(member(object, "status"), "allocatable"), more);
  node.capacity = amounts_of(member(member(object, "status"), "capacity"), more);
  for (Amounts* amounts : {&node.allocatable, &node.capacity})
    std::erase_if(*amounts, [](const auto& entry) { return entry.second > kMostUnitsOfNode; });
  const auto type = node.labels.find("node.kubernetes.io/instance-type");
  if (type != node.labels.end()) node.instance_type = type->second;
  return node;
}

namespace {

// Of the namespace kube-system, or of a priority that Kubernetes keeps for pods of the system.
bool is_critical(const json& metadata, const json& spec) {
  constexpr std::int64_t kSystem = 2'000'000'000;
  const json& priority = member(spec, "priority");
  return text_of(metadata, "namespace") == "kube-system" || text_of(spec, "priorityClassName").starts_with("system-") ||
         (priority.is_number_integer() && priority.get<std::int64_t>() >= kSystem);
}

}  // namespace

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
  pod.stays = std::ranges::any_of(list_of(metadata, "ownerReferences"), [](const json& owner) {
    return text_of(owner, "kind") == "DaemonSet" || text_of(owner, "kind") == "Node";
  });
  pod.critical = is_critical(metadata, spec);
  pod.phase = text_of(status, "phase");
  pod.reason = text_of(status, "reason");
  pod.message = message_of(status, "message");
  const json* scheduled = condition(object, "PodScheduled");
  if (scheduled != nullptr && text_of(*scheduled, "status") == "False") {
    pod.scheduled_reason = text_of(*scheduled, "reason");
    pod.scheduled_message = message_of(*scheduled, "message");
    pod.scheduled_since = text_of(*scheduled, "lastTransitionTime");
  }
  read_placement(pod, spec);
  pod.rules = rules_not_counted(spec);
  pod.keeps_away = anti_affinity_of(spec);
  pod.labels = std::make_shared<const Labels>(labels_of(member(metadata, "labels")));
  pod.containers = containers_of(spec, more, amounts_of);
  pod.general = general_requests(spec, more);
  pod.amounts_unread = !has_readable_amounts(Kind::pods, object, more);
  read_claims(pod, object);
  read_waits(pod, status);
  return pod;
}

Event event_of(const json& object) {
  Event event;
  const json& involved = member(object, "involvedObject");
  event.object_kind = text_of(involved, "kind");
  event.object_namespace = text_of(involved, "namespace");
  event.object_name = text_of(involved, "name");
  event.object_uid = text_of(involved, "uid");
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
