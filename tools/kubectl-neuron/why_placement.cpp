#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "agent/allocator/allocator.h"
#include "agent/base/parse.h"
#include "tools/kubectl-neuron/why.h"

// Locality and health of a running pod's hardware: from the report of the node's agent.
namespace neuron::fleet {
namespace {

using allocator::ChooseRequest;
using allocator::NodeTopology;
using allocator::Reason;

struct Own {
  std::set<int> devices;
  std::set<int> cores;
  std::set<std::string> efas;
};

// By container, through resources and claims.
std::map<std::string, Own> hardware_of(const Pod& pod, const std::vector<report::PodUse>& uses) {
  std::map<std::string, Own> all;
  for (const report::PodUse& use : uses) {
    if (use.pod_namespace != pod.pod_namespace || use.pod != pod.name) continue;
    Own& own = all[use.container];
    own.devices.insert(use.devices.begin(), use.devices.end());
    own.cores.insert(use.cores.begin(), use.cores.end());
    own.efas.insert(use.efas.begin(), use.efas.end());
  }
  return all;
}

std::string shape_of(const Reason& reason) {
  const std::string size = std::to_string(reason.units);
  if (reason.kind == Reason::Kind::scattered) return "set of " + size + ", not connected";
  if (reason.kind == Reason::Kind::core_scatter) return size + " cores that are not a range";
  const std::string words = phrase(reason);
  return words.substr(0, words.find(','));
}

std::vector<int> all_devices(const NodeTopology& topology) {
  std::vector<int> all;
  for (const NodeTopology::Device& device : topology.devices) all.push_back(device.index);
  return all;
}

// Healthy devices that no other pod has.
std::vector<int> free_beside(const Pod& pod, const report::NodeReport& node) {
  std::vector<int> all;
  for (const model::NeuronDevice& device : node.host.devices) {
    const auto users = report::pods_on_device(node, device.index).value_or(std::vector<std::string>{});
    const bool taken = std::ranges::any_of(users, [&](const std::string& user) { return user != full_name(pod); });
    if (!taken && device.health.state != model::HealthState::unhealthy) all.push_back(device.index);
  }
  return all;
}

std::optional<int> hops_of(const NodeTopology& topology, const std::vector<int>& devices) {
  ChooseRequest request;
  request.available = all_devices(topology);
  return explain_devices(topology, request, devices).hops;
}

std::vector<int> nearest(const NodeTopology& topology, const std::vector<int>& available, std::size_t size) {
  ChooseRequest request;
  request.available = available;
  request.size = static_cast<int>(size);
  return choose_devices(topology, request).ids;
}

void add_efas(const NodeTopology& topology, const Own& own, const std::vector<int>& devices, Placement& placement) {
  ChooseRequest request;
  request.prefer_devices = devices;
  std::vector<int> chosen;
  for (std::size_t i = 0; i < topology.efas.size(); ++i) {
    request.available.push_back(static_cast<int>(i));
    if (own.efas.contains(topology.efas[i].name)) chosen.push_back(static_cast<int>(i));
  }
  if (chosen.empty() || devices.empty()) return;
  request.size = static_cast<int>(chosen.size());
  placement.near_efas = explain_efas(topology, request, chosen).nearest;
  placement.best_efas = explain_efas(topology, request, choose_efas(topology, request).ids).nearest;
}

void add_faults(const report::NodeReport& node, const Own& own, Placement& placement) {
  const auto add = [&](const std::string& name, const model::Health& health) {
    const bool bad = health.state == model::HealthState::unhealthy || health.state == model::HealthState::degraded;
    if (!bad) return;
    std::string text = printable(name) + " is " + std::string(model::to_string(health.state));
    if (!health.sentence.empty()) text += ": " + printable(health.sentence, 300);
    if (!health.action.empty()) text += "; what to do: " + printable(health.action, 300);
    placement.faults.push_back(std::move(text));
  };
  for (const model::NeuronDevice& device : node.host.devices) {
    if (own.devices.contains(device.index)) add("neuron" + std::to_string(device.index), device.health);
  }
  for (const model::EfaInterface& efa : node.host.efas) {
    if (!efa.name.empty() && own.efas.contains(efa.name)) add(efa.name, efa.health);
  }
}

bool has_whole_devices(const report::NodeReport& node, const Own& own) {
  for (std::size_t i = 0; i < node.host.devices.size() && i < node.core_ids.size(); ++i) {
    if (!own.devices.contains(node.host.devices[i].index)) continue;
    const auto held = [&](int core) { return own.cores.contains(core); };
    if (!std::ranges::all_of(node.core_ids[i], held)) return false;
  }
  return true;
}

Placement placement_of(const std::string& container, const Own& own, const Pod& pod, const report::NodeReport& node) {
  Placement placement;
  placement.container = container;
  placement.devices.assign(own.devices.begin(), own.devices.end());
  add_faults(node, own, placement);
  const NodeTopology topology = allocator::make_topology(node.host);
  add_efas(topology, own, placement.devices, placement);
  if (own.devices.empty()) return placement;
  ChooseRequest request;
  request.available = all_devices(topology);
  if (!has_whole_devices(node, own)) {
    placement.shape = shape_of(explain_cores(topology, {}, {own.cores.begin(), own.cores.end()}));
    return placement;
  }
  placement.shape = shape_of(explain_devices(topology, request, placement.devices));
  placement.hops = hops_of(topology, placement.devices);
  const std::size_t size = placement.devices.size();
  placement.best_hops = hops_of(topology, nearest(topology, request.available, size));
  if (!placement.hops || !placement.best_hops || *placement.hops <= *placement.best_hops) return placement;
  const std::vector<int> now = nearest(topology, free_beside(pod, node), size);
  const auto hops = hops_of(topology, now);
  if (now.size() == size && hops && *hops < *placement.hops) placement.better = now;
  return placement;
}

}  // namespace

bool Placement::is_good() const {
  const bool far = hops && best_hops && *hops > *best_hops;
  const bool far_efas = near_efas && best_efas && *near_efas < *best_efas;
  return !far && !far_efas && faults.empty() && shape.find(" not ") == std::string::npos;
}

std::optional<std::vector<Placement>> placements_of(const Pod& pod, const Node& node) {
  if (!node.report || !node.report->pods) return std::nullopt;
  std::vector<Placement> all;
  for (const auto& [container, own] : hardware_of(pod, *node.report->pods)) {
    all.push_back(placement_of(container, own, pod, *node.report));
  }
  return all;
}

namespace {

// Whether the newest message about it is that an image is on its way.
bool is_pulling(const std::vector<Said>& said) {
  const auto event = std::ranges::find(said, std::string(), &Said::container);
  return event != said.end() && event->text.starts_with("Pulling: ");
}

// Of a pod that runs: what keeps one of its containers from it; "": all of them run.
std::string stopped_by(const std::vector<Said>& said, Answer& answer) {
  std::string first;
  for (const Said& one : said) {
    if (one.container.empty()) continue;
    const auto known = explain_message(one.text);
    if (first.empty()) first = printable(one.text, 300);
    if (!known && !one.as_it_came) continue;
    answer = Answer::no;
    return known ? known->meaning : printable(one.text, 300);
  }
  if (!first.empty()) answer = Answer::unknown;  // it may be about to start
  return first;
}

bool is_away(const Node& node) {
  return (node.ready && !*node.ready) || std::ranges::any_of(node.taints, [](const Taint& taint) {
           return taint.key == "node.kubernetes.io/unreachable" || taint.key == "node.kubernetes.io/not-ready";
         });
}

void note_ending(const Fleet& fleet, const Pod& pod, const Node& node, Why& why) {
  if (pod.claims.empty()) return;
  const bool has_pool = std::ranges::any_of(
      fleet.pools, [&](const Pool& pool) { return pool.node == node.name && !pool.devices.empty(); });
  if (has_pool && node.mode == Mode::claims) return;
  why.notes.push_back("no driver of its claim is on " + printable(node.name) +
                      ": label the node again (neuron-agent/mode=dra), or delete the pod by force");
}

void explain_starting(const std::vector<Said>& said, bool is_node_away, Why& why) {
  std::string reason = "nothing says what it waits for";
  why.answer = Answer::no;
  if (!why.messages.empty()) {
    const Explanation& first = why.messages.front();
    reason = first.meaning.empty() ? first.said : first.meaning;
  } else if (is_node_away) {
    reason = "the node is not ready";
  } else if (is_pulling(said)) {
    reason = "the node pulls an image";
  } else {
    why.answer = Answer::unknown;
  }
  why.summary = "it is on " + printable(why.node) + " and not running yet: " + reason;
}

void explain_running(const std::vector<Said>& said, bool is_node_away, Why& why) {
  const std::string where = printable(why.node);
  const bool good = !why.placements || std::ranges::all_of(*why.placements, &Placement::is_good);
  why.answer = is_node_away ? Answer::unknown : Answer::yes;
  if (const std::string reason = stopped_by(said, why.answer); !reason.empty()) {
    why.summary = "it is on " + where + ", and not all of it runs: " + reason;
  } else if (is_node_away) {
    why.summary = "it ran on " + where + " when the node last reported: the node is not ready, so this may be old";
  } else {
    why.summary = "it runs on " + where + (good ? "" : ", and not on the best devices");
  }
}

}  // namespace

void explain_placed(const Fleet& fleet, const Pod& pod, const std::vector<Said>& said, Why& why) {
  const Node* node = find_node(fleet, pod.node);
  const std::string where = printable(pod.node);
  const bool is_ending = why.state == PodState::ending;
  if (node == nullptr && fleet.nodes_unread.empty()) {
    why.answer = why.state == PodState::running ? Answer::unknown : Answer::no;
    why.summary = (is_ending ? "it is being deleted; it" : "it") +
                  (" was placed on " + where + ", and there is no node " + where);
    return;
  }
  if (node != nullptr) why.placements = placements_of(pod, *node);
  if (!why.placements) {
    why.notes.push_back("which devices it has is not known: " +
                        (node == nullptr                ? "node " + where + " could not be read"
                         : node->report_missing.empty() ? std::string("the agent's answer names no pods")
                                                        : printable(node->report_missing, 300)));
  }
  const bool is_node_away = node != nullptr && is_away(*node);
  if (is_node_away) why.notes.push_back("node " + where + " is not ready, so the pod's state may be old");
  if (is_ending) {
    why.answer = Answer::no;
    why.summary = "it is being deleted, and still on " + where;
    if (node != nullptr) note_ending(fleet, pod, *node, why);
  } else if (why.state == PodState::starting) {
    explain_starting(said, is_node_away, why);
  } else {
    explain_running(said, is_node_away, why);
  }
}

}  // namespace neuron::fleet
