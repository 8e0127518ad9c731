#include "tools/neuron-agent/explain_pod.h"

#include <algorithm>
#include <set>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::agent {
namespace {

using Row = std::vector<std::string>;

std::string or_unknown(std::string words) {
  return words.empty() ? "unknown" : words;
}

// Columns as wide as their widest word, two blanks apart, behind two blanks.
std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line += std::string(widths[i] - row[i].size() + 2, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string marked(std::string words, model::Origin origin) {
  return origin == model::Origin::assumed ? words + '*' : words;
}

std::string address_of(const ExplainedDevice& device) {
  if (!device.facts || !device.facts->bdf) return "unknown";
  return marked(model::to_string(device.facts->bdf->value), device.facts->bdf->origin);
}

std::string numa_of(const ExplainedDevice& device) {
  if (!device.facts || !device.facts->numa_node) return "unknown";
  const int node = device.facts->numa_node->value;
  return marked(node < 0 ? "none" : std::to_string(node), device.facts->numa_node->origin);
}

std::string health_of(const ExplainedDevice& device) {
  std::string words = state_words(device.health);
  if (!device.device_is.empty()) words += " (the device is " + device.device_is + " because of another of its cores)";
  return words;
}

std::string devices_table(const ExplainedContainer& container) {
  if (container.devices.empty()) return "";
  std::vector<Row> rows = {{"device", "PCI address", "NUMA", "cores", "physical", "health"}};
  for (const ExplainedDevice& device : container.devices) {
    rows.push_back({"neuron" + std::to_string(device.index), address_of(device), numa_of(device),
                    or_unknown(format_int_list(device.cores)) + (device.whole ? "" : " (a part)"),
                    or_unknown(format_int_list(device.physical_cores)), health_of(device)});
  }
  std::string text = table(rows);
  for (const ExplainedDevice& device : container.devices) {
    for (const std::string& other : device.shared_with) {
      text += "  neuron" + std::to_string(device.index) + " is shared with " + other + '\n';
    }
  }
  return text;
}

std::string efas_table(const ExplainedContainer& container) {
  if (container.efas.empty()) return "";
  std::vector<Row> rows = {{"interface", "PCI address", "NUMA", "nearest to", "health"}};
  for (const ExplainedEfa& efa : container.efas) {
    if (!efa.facts) {
      rows.push_back({efa.name, "unknown", "unknown", "unknown", "not found on the machine"});
      continue;
    }
    const int node = efa.facts->numa_node.value_or(-1);
    std::string near = efa.nearest_to.empty() ? "unknown" : "neuron" + format_int_list(efa.nearest_to);
    if (!efa.is_near && !efa.nearest_to.empty() && !container.devices.empty()) near += " (not its own)";
    rows.push_back({efa.name, model::to_string(efa.facts->bdf), node < 0 ? "unknown" : std::to_string(node), near,
                    state_words(efa.facts->health)});
  }
  return table(rows);
}

std::string units_lines(const ExplainedContainer& container) {
  std::string text;
  for (const HeldUnits& units : container.units) {
    std::string ids;
    for (const std::string& id : units.ids) ids += (ids.empty() ? "" : " ") + id;
    const std::string by = units.claim.empty() ? units.resource : "claim " + units.claim + " of " + units.resource;
    text += "  by " + by + (units.admin_access ? ", admin access, holds nothing: " : ": ") + ids + '\n';
    for (const std::string& id : units.unknown) text += "  " + id + " does not exist on this node\n";
  }
  return text;
}

std::string hops_words(const Nearness& near) {
  std::string words = ", " + counted(static_cast<std::size_t>(*near.hops), "hop") + " between its devices in total";
  if (!near.best_hops) return words;
  return words + (*near.hops <= *near.best_hops ? ": the best possible on this node"
                                                : "; the best set of this node has " + std::to_string(*near.best_hops));
}

std::string nearness_lines(const ExplainedContainer& container) {
  const Nearness& near = container.nearness;
  std::string text;
  if (!near.shape.empty()) {
    text += "  shape: " + near.shape;
    if (near.numa_nodes > 1) text += ", on " + std::to_string(near.numa_nodes) + " NUMA nodes";
    text += (near.hops ? hops_words(near) : "") + '\n';
  }
  if (near.near_efas && near.best_efas) {
    text +=
        "  EFA: " + std::to_string(*near.near_efas) + " of " + std::to_string(container.efas.size()) +
        (container.efas.size() == 1 ? " is" : " are") + " nearest to its devices" +
        (*near.near_efas >= *near.best_efas ? ": the maximum" : "; " + std::to_string(*near.best_efas) + " possible") +
        '\n';
  }
  return text;
}

// Health as `kubectl get pod -o yaml` shows it from Kubernetes 1.36 on (docs/troubleshooting.md).
std::string kubelet_lines(const ExplainedContainer& container) {
  std::string text;
  for (const HeldUnits& units : container.units) {
    std::string unhealthy;
    bool known = !units.ids.empty();
    for (std::size_t i = 0; i < units.ids.size(); ++i) {
      if (units.kubelet[i] == KubeletView::unhealthy) unhealthy += (unhealthy.empty() ? "" : " ") + units.ids[i];
      known &= units.kubelet[i] != KubeletView::unknown;
    }
    text += "  kubelet: " + (units.claim.empty() ? units.resource : "claim " + units.claim) + ": ";
    const std::string_view absent = units.claim.empty() ? "health not reported" : "Unknown";
    text += !unhealthy.empty() ? unhealthy + " Unhealthy" : known ? "all Healthy" : std::string(absent);
    text += '\n';
  }
  return text;
}

struct Fault {
  std::string what;
  model::Health health;
};

std::vector<Fault> faults_of(const ExplainedPod& pod) {
  std::vector<Fault> faults;
  std::set<std::string> seen;
  for (const ExplainedContainer& container : pod.containers) {
    for (const ExplainedDevice& device : container.devices) {
      const std::string name = "neuron" + std::to_string(device.index);
      if (is_fault(device.health) && seen.insert(name).second) faults.push_back({name, device.health});
    }
    for (const ExplainedEfa& efa : container.efas) {
      if (!seen.insert(efa.name).second) continue;
      if (!efa.facts) {
        faults.push_back({efa.name,
                          {model::HealthState::unhealthy, "efa_vanished", "not found on the machine",
                           "inspect the kernel log; reboot or replace the instance"}});
      } else if (is_fault(efa.facts->health)) {
        faults.push_back({efa.name, efa.facts->health});
      }
    }
  }
  return faults;
}

bool only_kubelet_sees_fault(const ExplainedPod& pod) {
  return std::ranges::any_of(pod.containers, [](const ExplainedContainer& container) {
    return std::ranges::any_of(container.units, &HeldUnits::has_unhealthy);
  });
}

std::string fault_lines(const ExplainedPod& pod) {
  const std::vector<Fault> faults = faults_of(pod);
  std::string text;
  for (const Fault& fault : faults) {
    text += "\n" + fault.what + " is " + state_words(fault.health) + '\n';
    if (!fault.health.sentence.empty()) text += "  seen  " + fault.health.sentence + '\n';
    if (!fault.health.action.empty()) text += "  do    " + fault.health.action + '\n';
  }
  if (faults.empty() && only_kubelet_sees_fault(pod)) {
    return "\nThe kubelet reports some of it as unhealthy, but a single scan shows no fault: the running agent has "
           "seen\na change that one scan cannot (a growing count, a stopped heartbeat), or it is not running. See its "
           "log.\n";
  }
  if (faults.empty()) return "";
  return text + "\nThe pod keeps running, and no new pod gets the unhealthy unit. Delete the pod to move its work.\n";
}

// Whether any container's places could be compared with others.
bool is_compared(const ExplainedPod& pod) {
  return std::ranges::any_of(
      pod.containers, [](const Nearness& near) { return near.hops || near.near_efas || near.scattered; },
      &ExplainedContainer::nearness);
}

bool is_by_claim(const ExplainedPod& pod) {
  return std::ranges::any_of(pod.containers, [](const ExplainedContainer& container) {
    return std::ranges::any_of(container.units, [](const HeldUnits& units) { return !units.claim.empty(); });
  });
}

std::string why_lines(const ExplainedPod& pod) {
  const std::string head = "\nWhy these: ";
  if (!is_compared(pod)) {
    return head + "others would have been equally good; which were free at the pod's admission is unknown.\n";
  }
  if (!is_worse_than_possible(pod)) return head + "no better set exists on this node.\n";
  std::string text = head + "what was free at the pod's admission is unknown.\n";
  text += is_by_claim(pod)
              ? "The scheduler chose them by the claims: a device class of groups gives neighbours (docs/dra.md).\n"
              : "The agent logs the reason of each choice at --log-level=debug.\n";
  for (const ExplainedContainer& container : pod.containers) {
    if (container.nearness.better_now.empty()) continue;
    text += "Better for " + container.name + " and free now: devices " +
            format_int_list(container.nearness.better_now) + "; a new pod may get them.\n";
  }
  return text;
}

bool has_assumed(const ExplainedPod& pod) {
  const auto is = [](const auto& maybe) { return maybe && maybe->origin == model::Origin::assumed; };
  for (const ExplainedContainer& container : pod.containers) {
    for (const ExplainedDevice& device : container.devices) {
      if (device.facts && (is(device.facts->bdf) || is(device.facts->numa_node))) return true;
    }
  }
  return false;
}

constexpr std::size_t kMostNear = 5;
constexpr std::size_t kMaxText = 600;  // bytes that are compared; a namespace and a name have 317
constexpr std::size_t kMaxEdits = 4;
constexpr std::size_t kMaxShownName = 320;

// Names that begin with the wanted one ("train" and "train-0"), or are a few edits away; the nearest first.
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
  std::ranges::sort(ranked);
  std::vector<std::string> near;
  for (std::size_t i = 0; i < std::min(ranked.size(), kMostNear); ++i) near.push_back(ranked[i].second);
  return near;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::string state_words(const model::Health& health) {
  std::string words(model::to_string(health.state));
  return health.reason.empty() ? words : words + ": " + health.reason;
}

std::string explain_text(const ExplainedPod& pod, const ExplainFacts& facts) {
  std::string text = "pod " + pod.pod_namespace + '/' + pod.pod + " on " +
                     (facts.host.instance_type.empty() ? "a node of unknown type" : facts.host.instance_type);
  if (pod.containers.empty()) {
    text += " holds no Neuron core or device and no EFA interface\n";
    for (const std::string& resource : pod.foreign)
      text += "  it holds " + resource + ", which this agent does not manage\n";
    return text + "It requested none, or its containers have ended: kubectl describe pod shows its limits.\n";
  }
  text += has_faults(pod)               ? ": a problem was found\n"
          : is_worse_than_possible(pod) ? ": healthy, but a better set was possible\n"
                                        : ": all healthy\n";
  for (const ExplainedContainer& container : pod.containers) {
    text += "\ncontainer " + container.name + '\n' + units_lines(container) + devices_table(container) +
            efas_table(container) + nearness_lines(container) + kubelet_lines(container);
  }
  text += fault_lines(pod) + why_lines(pod);
  if (!facts.checkpoint_unread.empty()) {
    text +=
        "\nThe kubelet's checkpoint cannot be read: " + facts.checkpoint_unread +
        "\nCore ids are interpreted with the current LNC: if it changed while the pod ran, they mean other cores.\n";
  }
  if (has_assumed(pod)) text += "\n* from the official table of the instance type, not from the machine.\n";
  return text + "This is one scan: growing error counts appear in the running agent's log and metrics.\n";
}

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

std::string no_choice_text(const PodChoice& choice, const std::string& wanted) {
  const auto same =
      std::ranges::count_if(choice.near, [&](const std::string& name) { return name.ends_with('/' + choice.pod); });
  if (same > 1) {
    return "several pods are named " + printable(choice.pod, kMaxShownName) + ": " + joined(choice.near) +
           "; give the namespace, too";
  }
  std::string text = "no pod " + printable(wanted, kMaxShownName) + " on this node, of " + std::to_string(choice.pods) +
                     " that the kubelet lists here";
  if (!choice.near.empty()) text += "; did you mean " + joined(choice.near) + "?";
  return text + "\nkubectl get pods --all-namespaces -o wide shows the node of a pod: run this in the agent there";
}

}  // namespace neuron::agent
