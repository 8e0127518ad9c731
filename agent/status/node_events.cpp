#include "agent/status/node_events.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include "agent/base/parse.h"
#include "agent/model/snapshot.h"
#include "agent/status/status_report.h"

namespace neuron::status {
namespace {

using model::Health;
using model::HealthState;

constexpr std::size_t kMaxMessage = 1024;  // limit of the API server
constexpr std::string_view kHealthy = "Healthy";

// ---- Units

struct Unit {
  std::string_view kind;  // "device", "interface", "node"
  std::string name;
  std::string key;  // of OpenFaults; an interface gets its name from its driver
  const Health* health = nullptr;
};

// Devices by index, then interfaces by address, then the node.
std::vector<Unit> units_of(const model::HostScan& host) {
  std::vector<Unit> units;
  for (const model::NeuronDevice& device : host.devices) {
    const std::string name = "neuron" + std::to_string(device.index);
    units.push_back({"device", name, name, &device.health});
  }
  for (const model::EfaInterface& efa : host.efas) {
    const std::string address = to_string(efa.bdf);
    units.push_back({"interface", efa.name.empty() ? address : efa.name, address, &efa.health});
  }
  units.push_back({"node", "node", "node", &host.kernel_log.node_health});
  return units;
}

const Unit& find(const std::vector<Unit>& units, const std::string& name) {
  const auto found = std::ranges::find_if(units, [&](const Unit& unit) { return unit.name == name; });
  return found == units.end() ? units.back() : *found;
}

// ---- Sentences

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// The sentence without the unit's name: "neuron3: x" and "rdmap16s25 (0000:10:19.0): x" as "x", "dev/neuron3 is" as
// "dev/neuron* is".
std::string without_name(const std::string& unit, std::string_view sentence) {
  if (sentence.starts_with(unit)) {
    sentence.remove_prefix(unit.size());
    const auto address_end = sentence.find(')');
    if (sentence.starts_with(" (") && address_end != std::string_view::npos) sentence.remove_prefix(address_end + 1);
    sentence.remove_prefix(std::min(sentence.find_first_not_of(": "), sentence.size()));
  }
  std::string text;
  while (!sentence.empty()) {
    const auto at = std::min(sentence.find(unit), sentence.size());
    text += sentence.substr(0, at);
    sentence.remove_prefix(at);
    if (sentence.empty()) break;
    sentence.remove_prefix(unit.size());
    const bool is_longer_name = !sentence.empty() && is_digit(sentence.front());
    text += is_longer_name ? unit : unit.starts_with("neuron") ? "neuron*" : "*";
  }
  return text;
}

EventPart part_of(const std::string& unit, const Health& health) {
  Health without_action = health;
  without_action.action.clear();
  return {unit, words_of(unit, without_action), without_name(unit, health.sentence)};
}

// "neuron0 to neuron3, neuron7 and neuron9".
std::string list_of(const std::vector<std::string>& units) {
  struct Run {
    std::string first, last;
    int count = 1;
  };
  const auto number_of = [](const std::string& name) -> std::optional<int> {
    constexpr std::string_view kName = "neuron";
    return name.starts_with(kName) ? parse_int(std::string_view(name).substr(kName.size()), 0, 9999) : std::nullopt;
  };
  std::vector<Run> runs;
  for (const std::string& unit : units) {
    const auto number = number_of(unit);
    const auto last = runs.empty() ? std::nullopt : number_of(runs.back().last);
    if (number && last && *number == *last + 1) {
      runs.back().last = unit;
      ++runs.back().count;
    } else {
      runs.push_back({unit, unit});
    }
  }
  std::vector<std::string> items;
  for (const Run& run : runs) {
    constexpr int kFew = 2;
    if (run.count > kFew) {
      items.push_back(run.first + " to " + run.last);
      continue;
    }
    items.push_back(run.first);
    if (run.count == kFew) items.push_back(run.last);
  }
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " and " : ", ";
    text += items[i];
  }
  return text;
}

// ---- Events

class Events {
 public:
  // The event of that subject; made at its first use.
  NodeEvent& of(std::string_view kind, std::string_view rest) {
    const std::string subject = std::string(kind) + " " + std::string(rest);
    for (NodeEvent& event : events_) {
      if (event.subject == subject) return event;
    }
    events_.push_back({});
    events_.back().subject = subject;
    return events_.back();
  }
  std::vector<NodeEvent> take() && { return std::move(events_); }

 private:
  std::vector<NodeEvent> events_;
};

std::string subject_of(const Health& health) {
  return std::string(to_string(health.state)) + " " + health.reason;
}

void add_fault(Events& events, const Unit& changed, const std::vector<Unit>& units) {
  const Health& health = *changed.health;
  NodeEvent& event = events.of(changed.kind, subject_of(health));
  event.units.push_back(changed.name);
  if (event.units.size() > 1) return;
  event.is_warning = true;
  event.reason = camel_case(health.reason);
  event.action = health.action;
  for (const Unit& unit : units) {
    const bool same =
        unit.kind == changed.kind && unit.health->state == health.state && unit.health->reason == health.reason;
    if (same) event.parts.push_back(part_of(unit.name, *unit.health));
  }
}

void add_end(Events& events, const model::PartChange& change, std::string_view kind, const std::string& reason) {
  const bool appeared = change.kind == model::PartChange::Kind::appeared;
  const std::string words = (appeared ? "back and healthy, after " : "healthy again, after ") + reason;
  NodeEvent& event = events.of(kind, "healthy after " + reason);
  event.reason = kHealthy;
  event.units.push_back(change.name);
  event.parts.push_back({change.name, change.name + ": " + words, words});
}

// A unit that is no longer listed has no reason.
void add_gone(Events& events, const model::PartChange& change, std::string_view kind) {
  constexpr std::string_view kWords = "no longer listed";
  NodeEvent& event = events.of(kind, "gone");
  event.is_warning = true;
  event.reason = "Gone";
  event.units.push_back(change.name);
  event.parts.push_back({change.name, change.name + ": " + std::string(kWords), std::string(kWords)});
}

}  // namespace

std::vector<NodeEvent> events_of(const model::HostScan& before, const model::HostScan& after, OpenFaults& open) {
  Events events;
  const std::vector<Unit> units_before = units_of(before);
  const std::vector<Unit> units = units_of(after);
  for (const model::PartChange& change : model::diff(before, after).units) {
    const bool is_unlisted = change.kind == model::PartChange::Kind::left && !is_assessed(change.after);
    const Unit& unit = find(is_unlisted ? units_before : units, change.name);
    if (is_unlisted) {
      open.erase(unit.key);
      add_gone(events, change, unit.kind);
    } else if (change.after.state == HealthState::healthy) {
      if (const auto ended = open.extract(unit.key)) add_end(events, change, unit.kind, ended.mapped().reason);
    } else if (!change.after.action.empty()) {
      const OpenFault fault{change.after.state, change.after.reason};
      if (std::exchange(open[unit.key], fault) != fault) add_fault(events, unit, units);
    }
  }
  return std::move(events).take();
}

void merge(NodeEvent& event, NodeEvent newer) {
  for (const std::string& unit : event.units) {
    const bool is_in = std::ranges::find(newer.units, unit) != newer.units.end();
    if (!is_in) newer.units.push_back(unit);
  }
  // A fault contains all units that have it; the others only those that changed.
  const bool says_all = newer.is_warning && !newer.action.empty();
  for (EventPart& part : event.parts) {
    const bool is_in = std::ranges::any_of(newer.parts, [&](const EventPart& one) { return one.unit == part.unit; });
    if (!says_all && !is_in) newer.parts.push_back(std::move(part));
  }
  event = std::move(newer);
}

std::string message_of(const NodeEvent& event) {
  std::vector<std::pair<std::string, std::vector<const EventPart*>>> sentences;
  for (const EventPart& part : event.parts) {
    auto same = std::ranges::find_if(sentences, [&](const auto& one) { return one.first == part.shared; });
    if (same == sentences.end()) same = sentences.insert(same, {part.shared, {}});
    same->second.push_back(&part);
  }
  const std::string end = event.action.empty() ? "" : "; what to do: " + event.action;
  std::string message;
  std::vector<std::string> rest;  // whose sentence is left out
  constexpr std::size_t kForRest = 300;
  for (const auto& [sentence, parts] : sentences) {
    std::vector<std::string> names;
    for (const EventPart* part : parts) names.push_back(part->unit);
    const std::string words = parts.size() == 1 ? parts.front()->words : list_of(names) + ": " + sentence;
    const std::string separator = message.empty() ? "" : "; ";
    const bool fits = message.size() + separator.size() + words.size() + kForRest + end.size() <= kMaxMessage;
    if (fits || message.empty()) {
      message += separator + words;
    } else {
      rest.insert(rest.end(), names.begin(), names.end());
    }
  }
  if (!rest.empty()) message += "; likewise " + list_of(rest);
  return printable(message.substr(0, kMaxMessage - std::min(end.size(), kMaxMessage)) + end, kMaxMessage);
}

}  // namespace neuron::status
