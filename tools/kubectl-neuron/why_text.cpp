#include "tools/kubectl-neuron/why.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/commands.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;

constexpr std::size_t kMostGroups = 12;

std::string_view to_string(PodState state) {
  constexpr std::array kNames = {"waiting", "starting", "running", "refused", "ended", "ending"};
  return kNames.at(static_cast<std::size_t>(state));
}

void add_explanations(const std::vector<Explanation>& all, const std::string& title, std::string& text) {
  if (all.empty()) return;
  text += "\n" + title + "\n";
  for (const Explanation& one : all) {
    text += "  " + (one.nodes > 0 ? counted(one.nodes, "node") + ": " : "") + one.said + "\n";
    if (!one.meaning.empty()) text += "      " + one.meaning + "\n";
    if (!one.advice.empty()) text += "      do: " + one.advice + "\n";
  }
}

std::string head_of(const NodeGroup& group) {
  const std::string names = some_of(group.nodes, 3);
  const std::string nodes = group.nodes.size() == 1 ? names : counted(group.nodes.size(), "node") + " (" + names + ")";
  if (group.answer == Answer::yes) return nodes + ": fits";
  return nodes + (group.answer == Answer::no ? ": does not fit" : ": cannot tell");
}

void add_groups(const std::vector<NodeGroup>& groups, std::string& text) {
  if (groups.empty()) return;
  text += "\nnodes\n";
  std::size_t shown = 0, left = 0;
  for (const NodeGroup& group : groups) {
    if (++shown > kMostGroups) {
      left += group.nodes.size();
      continue;
    }
    text += "  " + head_of(group) + "\n";
    for (const Obstacle& one : group.obstacles) text += "      " + words_of(one) + "\n";
  }
  if (left > 0) text += "  " + counted(left, "more node") + " (all with -o json)\n";
}

void add_placement(const Placement& one, std::string& text) {
  text += "  container " + printable(one.container);
  if (!one.devices.empty()) text += ": devices " + format_int_list(one.devices);
  if (!one.shape.empty()) text += ", " + one.shape;
  if (one.hops) text += ", " + counted(*one.hops, "hop");
  if (one.hops && one.best_hops && *one.hops > *one.best_hops) {
    text += "; the nearest set of the node has " + std::to_string(*one.best_hops);
  }
  text += "\n";
  if (one.near_efas) {
    text += "      " + counted(*one.near_efas, "interface") + " nearest to its devices, " +
            std::to_string(one.best_efas.value_or(0)) + " possible\n";
  }
  for (const std::string& fault : one.faults) text += "      " + fault + "\n";
  if (!one.better.empty()) {
    text += "      nearer and free now: devices " + format_int_list(one.better) + "; a new pod may get them\n";
  }
}

json json_of(const Explanation& one) {
  json object = {{"message", one.said}, {"meaning", one.meaning}, {"advice", one.advice}};
  if (one.nodes > 0) object["nodes"] = one.nodes;
  return object;
}

json json_of(const Obstacle& one) {
  json object = {{"kind", to_string(one.kind)}, {"sentence", words_of(one)}};
  if (!one.name.empty()) object["name"] = printable(one.name, 400);
  if (!one.detail.empty()) object["detail"] = printable(one.detail, 400);
  const bool has_numbers = one.asked != 0 || one.free != 0 || one.total != 0;
  if (has_numbers) object.update({{"asked", one.asked}, {"free", one.free}, {"total", one.total}});
  json holders = json::array();
  for (const Holder& holder : one.holders)
    holders.push_back({{"pod", printable(holder.pod, 400)}, {"amount", holder.amount}});
  if (!holders.empty()) object["holders"] = std::move(holders);
  return object;
}

json names_json(const std::vector<std::string>& names) {
  json all = json::array();
  for (const std::string& name : names) all.push_back(printable(name, 400));
  return all;
}

json json_of(const NodeGroup& group) {
  json obstacles = json::array();
  for (const Obstacle& one : group.obstacles) obstacles.push_back(json_of(one));
  return {{"nodes", names_json(group.nodes)}, {"answer", to_string(group.answer)}, {"obstacles", std::move(obstacles)}};
}

json json_of(const Change& one, bool as_counted) {
  json object = {{"kind", to_string(one.kind)},
                 {"sentence", words_of(one) + (as_counted ? ", as far as counted" : "")},
                 {"node", printable(one.node, 400)}};
  if (!one.pods.empty()) object["pods"] = names_json(one.pods);
  if (!one.to.empty()) object["to"] = printable(one.to, 400);
  if (!one.resource.empty()) object["resource"] = printable(one.resource, 400);
  if (!one.value.empty()) object["value"] = printable(one.value, 400);
  if (!one.refused_on.empty()) object["refused_on"] = printable(one.refused_on, 400);
  return object;
}

// Of other nodes where it was proved as well: "or on 1 more like it".
std::string or_others(const Change& change, const std::string& on) {
  if (change.nodes < 2) return "";
  const std::string number = std::to_string(change.nodes - 1);
  return "or " + on + (change.nodes == 2 ? "" : "one of ") + number + " more like it";
}

std::string fits_on(const Change& change) {
  const std::string others = or_others(change, "on ");
  return ": it then fits on " + printable(change.node) + (others.empty() ? "" : " " + others);
}

template <typename T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json json_of(const Placement& one) {
  return {{"container", printable(one.container, 400)},
          {"devices", one.devices},
          {"shape", one.shape},
          {"hops", optional_json(one.hops)},
          {"best_hops", optional_json(one.best_hops)},
          {"near_efas", optional_json(one.near_efas)},
          {"best_efas", optional_json(one.best_efas)},
          {"better", one.better},
          {"faults", one.faults},
          {"good", one.is_good()}};
}

template <typename T>
json list_json(const std::vector<T>& values) {
  json all = json::array();
  for (const T& value : values) all.push_back(json_of(value));
  return all;
}

}  // namespace

std::string_view to_string(Change::Kind kind) {
  constexpr std::array kNames = {"pods_ended",        "pod_moved", "uncordon",        "tolerate",        "gate_removed",
                                 "default_scheduler", "other_lnc", "claim_not_count", "count_not_claim", "fewer"};
  return kNames.at(static_cast<std::size_t>(kind));
}

namespace {

std::vector<std::string> names_of_pods(const Change& change) {
  std::vector<std::string> names = change.pods;
  for (std::size_t i = 0; i < std::min(names.size(), change.leaving.size()); ++i) {
    if (change.leaving[i]) names[i] += " (being deleted)";
  }
  return names;
}

std::string step_of(const Change& change) {
  const std::string node = printable(change.node), value = printable(change.value);
  const std::vector<std::string> pods = names_of_pods(change);
  switch (change.kind) {
    case Change::Kind::pods_ended:
      if (pods.size() > 2) return "end these " + counted(pods.size(), "pod") + " on " + node + ": " + some_of(pods, 16);
      return some_of(pods) + (pods.size() == 1 ? " ends: it then fits on " : " end: it then fits on ") + node;
    case Change::Kind::pod_moved:
      return some_of(pods) + " moves from " + node + " to " + printable(change.to) + ": it then fits on " + node;
    case Change::Kind::uncordon:
      return "kubectl uncordon " + node + (change.nodes > 1 ? ", " : "") + or_others(change, "");
    case Change::Kind::tolerate:
      return "a toleration of " + value + fits_on(change);
    case Change::Kind::gate_removed:
      return "its scheduling gates removed" + fits_on(change);
    case Change::Kind::default_scheduler:
      return "without schedulerName" + fits_on(change);
    case Change::Kind::other_lnc:
      return "LNC " + value + " on " + node + (change.nodes > 1 ? " " : "") + or_others(change, "") +
             ": it then fits there";
    case Change::Kind::claim_not_count:
      return "a claim instead of a count" + fits_on(change);
    case Change::Kind::count_not_claim:
      return "a count in its limits instead of the claim" + fits_on(change);
    case Change::Kind::fewer:
      break;
  }
  const std::string what = change.resource == "claim" ? "devices in its claim" : printable(change.resource);
  return (change.exactly ? "exactly " : "at most ") + value + " " + what + fits_on(change);
}

}  // namespace

std::string words_of(const Change& change) {
  return step_of(change) + (change.refused_on.empty() ? ""
                                                      : "; the scheduler may choose " + printable(change.refused_on) +
                                                            " instead, where the agent refuses it");
}

namespace {

std::string kinds_of(const std::set<Change::Kind>& tried) {
  constexpr std::array kNames = {"other pods that end",
                                 "other pods that move",
                                 "an uncordoned node",
                                 "a toleration",
                                 "a removed gate",
                                 "the default scheduler",
                                 "another LNC",
                                 "a claim",
                                 "a count",
                                 "a smaller number"};
  std::vector<std::string> names;
  for (const Change::Kind kind : tried) names.emplace_back(kNames.at(static_cast<std::size_t>(kind)));
  return some_of(names, kNames.size());
}

}  // namespace

std::string why_text(const Why& why) {
  std::string text = "pod " + printable(why.pod, 400) + ": " + why.summary + "\n";
  add_explanations(why.messages, "what the node says", text);
  if (why.placements && !why.placements->empty()) text += "\nhardware\n";
  for (const Placement& one : why.placements.value_or(std::vector<Placement>{})) add_placement(one, text);
  add_explanations(why.scheduler, "what the scheduler says", text);
  add_groups(why.nodes, text);
  if (!why.notes.empty()) text += "\n";
  for (const std::string& note : why.notes) text += note + "\n";
  if (!why.not_counted.empty()) text += "\nnot counted: " + some_of(why.not_counted, 20) + "\n";
  const std::string alone = why.as_counted ? "as far as counted, " : "";
  if (!why.changes.empty()) text += "\n" + alone + "each of these would let it in\n";
  for (const Change& change : why.changes) text += "  " + words_of(change) + "\n";
  const bool stuck = why.changes.empty() && why.all_tried && why.answer == Answer::no && !why.tried.empty();
  if (stuck) text += "\nnone of these would let it in: " + kinds_of(why.tried) + "\n";
  return text;
}

std::string why_json(const Why& why) {
  json changes = json::array();
  for (const Change& change : why.changes) changes.push_back(json_of(change, why.as_counted));
  json object = {{"format", "kubectl-neuron-why/1"},
                 {"pod", printable(why.pod, 400)},
                 {"state", to_string(why.state)},
                 {"answer", to_string(why.answer)},
                 {"summary", why.summary},
                 {"node", why.node.empty() ? json(nullptr) : json(printable(why.node, 400))},
                 {"messages", list_json(why.messages)},
                 {"scheduler", list_json(why.scheduler)},
                 {"notes", why.notes},
                 {"not_counted", names_json(why.not_counted)},
                 {"nodes", list_json(why.nodes)},
                 {"changes", std::move(changes)},
                 {"placements", why.placements ? list_json(*why.placements) : json(nullptr)}};
  return object.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

// ---- The command

namespace {

// Names that are close to the one that was typed.
std::string similar_to(const Fleet& fleet, const std::string& own, const std::string& name) {
  constexpr std::size_t kMost = 3;
  std::vector<std::pair<std::size_t, std::string>> near;
  const std::string wanted = name.substr(0, 253);
  for (const Pod& pod : fleet.pods) {
    if (pod.name == name) near.emplace_back(0, full_name(pod));
    if (pod.pod_namespace != own || pod.name == name || pod.name.size() > 253) continue;
    const std::size_t distance = edit_distance(wanted, pod.name);
    if (distance <= std::max<std::size_t>(2, name.size() / 3) || pod.name.starts_with(wanted)) {
      near.emplace_back(distance, full_name(pod));
    }
  }
  std::ranges::sort(near);
  std::vector<std::string> names;
  for (const auto& [distance, pod] : near) {
    if (names.size() < kMost) names.push_back(pod);
  }
  return names.empty() ? "" : "; similar: " + some_of(names);
}

}  // namespace

void add_why(CLI::App& command, WhyOptions& own) {
  command.add_option("pod", own.pod, "The pod, NAME or NAMESPACE/NAME")->required()->type_name("POD");
  command.add_option("-o,--output", own.output, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
}

int run_why(const Options& options, const WhyOptions& own) {
  Wanted wanted;
  wanted.claim_templates = wanted.events = true;
  const auto fleet = read_fleet(options, wanted);
  if (!fleet) return fail_with(fleet.error());
  print_unknown(*fleet);
  std::string name = own.pod;
  if (name.starts_with("pod/")) name.erase(0, 4);
  const std::size_t slash = name.find('/');
  const std::string in = slash == std::string::npos ? namespace_of(options, *fleet) : name.substr(0, slash);
  if (slash != std::string::npos) name.erase(0, slash + 1);
  const Pod* pod = find_pod(*fleet, in, name);
  if (pod == nullptr) {
    return fail_with(make_error(ErrorCode::not_found, "no pod " + printable(in) + "/" + printable(name, 260) +
                                                          " could be read" + similar_to(*fleet, in, name)));
  }
  constexpr std::chrono::seconds kLongest{10};
  Effort effort(kLongest);
  const Why answer = why(*fleet, *pod, &effort);
  return print(own.output == "json" ? why_json(answer) : why_text(answer), exit_status(answer));
}

}  // namespace neuron::fleet
