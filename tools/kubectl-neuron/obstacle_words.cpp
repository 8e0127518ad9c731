#include "tools/kubectl-neuron/fit.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"

namespace neuron::fleet {
namespace {

using Kind = Obstacle::Kind;

std::string number(std::int64_t value) {
  return amount_text(value);
}

std::string number(std::int64_t value, std::string_view noun) {
  return number(value) + " " + (value == 1 ? std::string(noun) : plural(noun));
}

std::string held_by(const Obstacle& one) {
  return one.holders.empty() ? "" : "; held by " + holders_of(one.holders);
}

std::string free_of(const Obstacle& one) {
  return (one.at_most ? "at most " : "") + number(one.free) + " of " + number(one.total) +
         (one.free == 1 ? " is free" : " are free");
}

std::string of_devices(const Obstacle& one, const std::string& why) {
  return "request " + printable(one.name) + " needs " + number(one.asked, "device") + ", " + free_of(one) + why +
         (one.at_most ? " (not all claims could be read)" : "") + held_by(one);
}

std::string too_few(const Obstacle& one) {
  return "asks for " + number(one.asked) + " " + printable(one.name) + ", " + free_of(one) +
         (one.at_most ? " (not all pods could be read)" : "") + held_by(one);
}

std::string too_little(const Obstacle& one) {
  const bool is_alike = amount_text(one.name, one.asked) == amount_text(one.name, one.free);  // rounded
  const auto text = [&](std::int64_t value) {
    return is_alike ? kube::quantity_text(value / kWholeUnit) : amount_text(one.name, value);
  };
  if (one.name == "pods") return "the node has as many pods as it takes (" + text(one.total) + ")";
  return "asks for " + text(one.asked) + " " + printable(one.name) + ", " + (one.at_most ? "at most " : "") +
         text(one.free) + " of " + text(one.total) + (one.free == kWholeUnit ? " is free" : " are free");
}

std::string words_of_pod(const Obstacle& one) {
  const std::string name = printable(one.name);
  switch (one.kind) {
    case Kind::gated:
      return "waits for its scheduling gate " + name + " to be removed";
    case Kind::no_scheduler:
      return "no scheduler of the name " + name + " is seen in this cluster (spec.schedulerName)";
    case Kind::claim_missing:
      return one.detail == "template" ? "there is no ResourceClaimTemplate " + name
                                      : "there is no ResourceClaim " + name;
    case Kind::class_unknown:
      return "there is no DeviceClass " + name;
    case Kind::all_differ:
      return "claim " + printable(one.detail) + " requests all devices, but they violate its constraint on " + name +
             ": the scheduler fails with an error";
    case Kind::claim_full:
      return number(one.total) + " pods have claim " + name + ", and no claim is shared by more";
    default:
      return name + " asks for " + number(one.asked, "device") + ", and a claim has at most " + number(one.total);
  }
}

std::string both_names(const Obstacle& one) {
  if (one.detail == "split") {
    return "container " + printable(one.name) +
           " asks for devices and cores, and the node offers none under both names";
  }
  return "container " + printable(one.name) + " asks for devices with " + number(one.asked, "core") + " and for " +
         number(one.free, "core") + ": not the same hardware, so the agent refuses it";
}

std::string words_of_node(const Obstacle& one) {
  const std::string name = printable(one.name), detail = printable(one.detail);
  switch (one.kind) {
    case Kind::both_names:
      return both_names(one);
    case Kind::not_ready:
      return "the node is not ready";
    case Kind::unschedulable:
      return "the node is cordoned";
    case Kind::taint:
      return "taint " + name + " is not tolerated";
    case Kind::label:
      return "asks for a node with " + name +
             (detail.empty() ? ", which the node lacks" : ", and the node has " + detail);
    case Kind::claim_elsewhere:
      return "claim " + name + " is allocated on " + detail;
    case Kind::no_resource:
      return "the node does not list " + name;
    case Kind::other_mode:
      if (detail == "claims") return "asks for " + name + " by count, and the node serves claims";
      return std::string("asks by claim, and the node ") +
             (detail == "nothing" ? "has no ResourceSlices" : "has a device plugin");
    default:
      return "";
  }
}

std::string words_of_hardware(const Obstacle& one) {
  const std::string name = printable(one.name), detail = printable(one.detail);
  switch (one.kind) {
    case Kind::too_few:
      return too_few(one);
    case Kind::other_name:
      return number(one.asked) + " " + name + " are withheld, since pods hold the hardware by " + detail + held_by(one);
    case Kind::unhealthy:
      if (!detail.empty()) return name + " is not offered: no plugin serves it, or all of it is unhealthy";
      return one.asked < 0 ? "some " + name + " are unhealthy" : number(one.asked) + " " + name + " unhealthy";
    case Kind::incomplete_pool:
      return "ResourceSlices of the node are missing, so its pool is incomplete";
    case Kind::no_device:
      return "no device for request " + name + (detail.empty() ? "" : ": none has " + detail);
    case Kind::lnc:
      return "no device for request " + name + ": the node has another LNC than " + detail;
    case Kind::too_few_devices:
      return of_devices(one, "");
    case Kind::counters:
      return of_devices(one, ", since their cores are taken through other devices");
    case Kind::capacity:
      return of_devices(one, ", since too little of their capacity is left");
    case Kind::tainted:
      return of_devices(one, ", since devices have the taint " + detail);
    case Kind::constraint:
      return "enough devices are free, but none of the free sets meets the constraint on " + name + " of claim " +
             detail;
    case Kind::together:
      return "each request is met by itself, but not all of " + name + " together";
    case Kind::too_little:
      return too_little(one);
    default:
      return "";
  }
}

std::string words_of_doubt(const Obstacle& one) {
  const std::string name = printable(one.name), detail = printable(one.detail);
  if (one.kind == Kind::selector)
    return "cannot tell: the expression of request " + name + " is not evaluated here: " + detail;
  if (one.kind == Kind::refused_there)
    return "cannot tell: the scheduler may choose " + name + ", where the agent refuses it";
  if (one.kind == Kind::not_tried) return "not tried: the time limit was reached before";
  if (one.kind == Kind::search) return "cannot tell: too many combinations for " + name;
  if (one.kind == Kind::name_order)
    return "cannot tell: it asks for devices and for cores, and which are given first decides";
  if (one.kind == Kind::unread && detail == "split")
    return "cannot tell: it is not known how many devices the node has, so some may be offered as cores alone";
  if (one.kind == Kind::unread && detail == "holders")
    return "cannot tell: not all " + name + " could be read, and others may hold what it asks for";
  return "cannot tell: " + name + " was not found, and not everything could be read";
}

constexpr std::array kNames = {
    "gated",           "no_scheduler", "claim_missing", "class_unknown",   "all_differ", "claim_full",
    "claim_limit",     "both_names",   "not_ready",     "unschedulable",   "taint",      "label",
    "claim_elsewhere", "no_resource",  "other_mode",    "too_few",         "other_name", "unhealthy",
    "incomplete_pool", "no_device",    "lnc",           "too_few_devices", "counters",   "capacity",
    "tainted",         "constraint",   "together",      "too_little",      "selector",   "search",
    "refused_there",   "name_order",   "unread",        "not_tried"};

// Nodes that differ in holders only share a line.
std::vector<Obstacle> without_holders(std::vector<Obstacle> obstacles) {
  for (Obstacle& one : obstacles) one.holders.clear();
  return obstacles;
}

using Places = std::map<std::string, std::size_t>;  // of pods in a list of holders

// Nor do processor time and memory, which differ everywhere, divide them.
std::vector<Obstacle> without_numbers(std::vector<Obstacle> obstacles) {
  for (Obstacle& one : obstacles) {
    if (one.kind == Kind::too_little) one.free = one.total = 0;
  }
  return obstacles;
}

// The most of any node.
void raise(Obstacle& all, const Obstacle& one) {
  if (all.kind != Kind::too_little || (all.free == one.free && all.total == one.total)) return;
  all.free = std::max(all.free, one.free);
  all.total = std::max(all.total, one.total);
  all.at_most = true;
}

void add_holders(std::vector<Holder>& all, Places& places, const std::vector<Holder>& more) {
  for (const Holder& holder : more) {
    const auto [at, is_new] = places.try_emplace(holder.pod, all.size());
    if (is_new) {
      all.push_back(holder);
    } else {
      all[at->second].amount += holder.amount;
    }
  }
}

int rank_of(Answer answer) {
  return answer == Answer::yes ? 0 : answer == Answer::unknown ? 1 : 2;
}

}  // namespace

std::string amount_text(std::int64_t units) {
  return units >= kMostUnits ? std::to_string(units) + " or more" : amount_text("", units * kWholeUnit);
}

std::string amount_text(const std::string& resource, std::int64_t thousandths) {
  constexpr std::array<const char*, 6> kUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  const bool is_bytes = resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  if (!is_bytes && thousandths % kWholeUnit != 0) return std::to_string(thousandths) + "m";
  std::int64_t base = kWholeUnit;
  std::size_t unit = 0;
  for (; is_bytes && thousandths / base >= 1024 && unit + 1 < kUnits.size(); ++unit) base *= 1024;
  const std::int64_t tenths = thousandths % base / (base / 10);
  return std::to_string(thousandths / base) + (tenths > 0 ? "." + std::to_string(tenths) : "") + kUnits.at(unit);
}

std::string words_of(const Obstacle& obstacle) {
  if (is_doubt(obstacle.kind)) return words_of_doubt(obstacle);
  if (is_of_pod(obstacle.kind)) return words_of_pod(obstacle);
  const std::string words = words_of_node(obstacle);
  return words.empty() ? words_of_hardware(obstacle) : words;
}

std::string_view to_string(Obstacle::Kind kind) {
  return kNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(Answer answer) {
  return answer == Answer::yes ? "fits" : answer == Answer::no ? "does_not_fit" : "unknown";
}

std::string some_of(const std::vector<std::string>& names, std::size_t most, std::string_view noun) {
  std::string text;
  const std::size_t shown = names.size() > most + 1 ? most : names.size();
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == shown && shown == names.size() ? " and " : ", ";
    text += printable(names[i]);
  }
  // At least two: a single one would be shown.
  if (shown < names.size()) {
    text += " and " + number(static_cast<std::int64_t>(names.size() - shown)) + " more" +
            (noun.empty() ? "" : " " + plural(noun));
  }
  return text;
}

std::string holders_of(const std::vector<Holder>& holders, std::size_t most) {
  std::vector<std::string> names;
  for (const Holder& one : holders) names.push_back(one.pod + (one.amount > 0 ? " (" + number(one.amount) + ")" : ""));
  return some_of(names, most, "pod");
}

std::vector<NodeGroup> grouped(const std::vector<NodeState>& states, const std::vector<Verdict>& verdicts) {
  std::vector<NodeGroup> groups;
  std::vector<std::vector<Places>> holders;  // parallel to the groups and their obstacles
  std::map<std::pair<Answer, std::vector<Obstacle>>, std::size_t> places;
  for (std::size_t i = 0; i < states.size() && i < verdicts.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    std::vector<Obstacle> alike = without_holders(verdict.obstacles);
    const auto [at, is_new] = places.try_emplace({verdict.answer, without_numbers(alike)}, groups.size());
    if (is_new) groups.push_back({{}, verdict.answer, std::move(alike)});
    if (is_new) holders.emplace_back(verdict.obstacles.size());
    NodeGroup& group = groups[at->second];
    group.nodes.push_back(states[i].node.name);
    for (std::size_t k = 0; k < verdict.obstacles.size(); ++k) {
      add_holders(group.obstacles[k].holders, holders[at->second][k], verdict.obstacles[k].holders);
      raise(group.obstacles[k], verdict.obstacles[k]);
    }
  }
  std::ranges::stable_sort(groups, {}, [](const NodeGroup& group) {
    return std::tuple(rank_of(group.answer), group.obstacles.size(), -static_cast<std::int64_t>(group.nodes.size()));
  });
  return groups;
}

}  // namespace neuron::fleet
