#include "agent/status/node_events.h"

#include "agent/base/parse.h"
#include "agent/model/reasons.h"
#include "agent/status/node_report.h"

namespace neuron::status {
namespace {

using model::HealthState;
using Kind = model::UnitChange::Kind;

constexpr std::size_t kMaxMessage = 1024;  // what the API server takes

NodeEvent ill(const model::UnitChange& change) {
  const model::Health& health = change.after;
  const bool is_warning = health.state != HealthState::unknown || !health.action.empty();
  return {is_warning, change.name, camel_case(health.reason), printable(words_of(change.name, health), kMaxMessage)};
}

NodeEvent well(const model::UnitChange& change) {
  std::string words = change.name + (change.kind == Kind::appeared ? " is there and healthy" : " is healthy");
  if (!change.before.reason.empty()) words += " again, after " + change.before.reason;
  return {false, change.name, "Healthy", printable(words, kMaxMessage)};
}

// It is not listed any more, so nothing says why.
NodeEvent gone(const model::UnitChange& change) {
  return {true, change.name, "Gone", printable(change.name + " is not listed any more", kMaxMessage)};
}

}  // namespace

std::vector<NodeEvent> events_of(const model::SnapshotDiff& changes, Since since) {
  std::vector<NodeEvent> events;
  for (const model::UnitChange& change : changes.units) {
    const bool same = change.before.state == change.after.state && change.before.reason == change.after.reason;
    if (change.kind == Kind::health && same) continue;
    if (change.kind == Kind::left && !is_assessed(change.after)) {
      events.push_back(gone(change));
    } else if (change.after.state == HealthState::healthy) {
      if (since == Since::before) events.push_back(well(change));
    } else if (!change.after.reason.empty()) {
      events.push_back(ill(change));
    }
  }
  return events;
}

}  // namespace neuron::status
