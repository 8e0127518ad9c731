#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "agent/kube/limits.h"
#include "agent/model/host_scan.h"
#include "agent/status/node_object.h"

// Changes of devices and interfaces as events on a Node: made (pure), pending at a bounded rate, and written.
namespace neuron::status {

// A unit in an event. Passive data.
struct EventPart {
  std::string unit;    // "neuron3"; an interface's RDMA name or PCI address; "node"
  std::string words;   // its sentence, with its name
  std::string shared;  // the same without its name, equal for units with a common cause
  friend bool operator==(const EventPart&, const EventPart&) = default;
};

// One event for all units of a kind that share state and reason, so that a common cause, such as a module that is not
// loaded, is not one event for each interface. Passive data.
struct NodeEvent {
  bool is_warning = false;         // type Warning, else Normal
  std::string subject;             // of events that count up in one object: "device unhealthy sram_ecc_uncorrected"
  std::string reason;              // CamelCase of the reason code; "Healthy", "Gone"
  std::vector<std::string> units;  // that changed
  std::vector<EventPart> parts;    // its content: of a fault all units that have it now, else of `units`
  std::string action;              // remediation; "" = none
  friend bool operator==(const NodeEvent&, const NodeEvent&) = default;
};

// A fault with a written event that no "Healthy" has ended. Passive data.
struct OpenFault {
  model::HealthState state = model::HealthState::unknown;
  std::string reason;
  friend bool operator==(const OpenFault&, const OpenFault&) = default;
};
using OpenFaults = std::map<std::string, OpenFault>;  // by device, PCI address of an interface, "node"

// Between two assessed hosts; an empty `before` means a start. Warnings for new states and reasons that require
// an action, and "Healthy" when a unit with a warning is healthy again. No event: a state without an action (a reset, a
// driver without health files), a counter that grows in a sentence, a healthy unit at the start.
[[nodiscard]] std::vector<NodeEvent> events_of(const model::HostScan& before, const model::HostScan& after,
                                               OpenFaults& open);

// Merges `newer` into the pending `event` of the same subject; the result contains all of both.
void merge(NodeEvent& event, NodeEvent newer);

// "neuron0 to neuron15: <sentence>; what to do: <action>": printable, at most 1 KiB. Units with the same sentence are
// named together; long sentences are left out, never a unit's name or the action.
[[nodiscard]] std::string message_of(const NodeEvent& event);

enum class Since {
  start,  // the first snapshot of a process
  before  // a later one
};

// An event of one subject, once or several times. Passive data.
struct PendingEvent {
  NodeEvent event;  // the last one, merged with those before
  WallTime first{}, last{};
  int times = 1;
  bool only_at_start = false;  // a predecessor of this process may have written it
};

// Events that wait to be written: one entry for each subject, so that a flapping unit only increases a count. Each is
// due at once when it is the first of a unit, then at most once in kSamePause; all of them at most kBurst at once and
// one in kPause on average. Only the times in between are lost. Pure; not synchronised.
class PendingEvents {
 public:
  static constexpr int kBurst = 25;  // as client-go's recorder has it
  static constexpr std::chrono::seconds kPause{30};
  static constexpr std::chrono::seconds kSamePause{60};

  void add(NodeEvent event, WallTime at, Since since);
  void put_back(PendingEvent event);  // it could not be written
  // When take() returns the next one; nullopt: none is pending.
  [[nodiscard]] std::optional<SteadyTime> due() const;
  // One that may be written at `now`; warnings first.
  [[nodiscard]] std::optional<PendingEvent> take(SteadyTime now);

 private:
  using Key = std::pair<std::string, std::string>;  // subject, unit: both from tables, so bounded

  [[nodiscard]] SteadyTime due_of(const NodeEvent& event) const;

  std::map<std::string, PendingEvent> waiting_;  // by subject
  std::map<Key, SteadyTime> again_at_;           // of units with an earlier event
  kube::TokenBucket bucket_{kPause, kBurst};
};

// Writes events as core/v1 Events in the namespace `default`, where those of Nodes have to be. core/v1 and not
// events.k8s.io/v1: `kubectl describe node` shows its count, and a merge patch of `count` needs neither get nor list.
// The name is made of the node's uid and the event's subject, so that a restarted agent writes nothing twice and
// continues its predecessor's count. Not synchronised.
class EventWriter {
 public:
  EventWriter(kube::Api& api, std::string node) : api_(api), node_(std::move(node)) {}

  // One to three calls. Errors: of the calls; the event is then not written.
  [[nodiscard]] Result<void> write(const PendingEvent& event, const std::string& node_uid);

 private:
  [[nodiscard]] Result<bool> create(const PendingEvent& event, const NodeRef& node, const std::string& name);
  [[nodiscard]] Result<bool> count_up(const PendingEvent& event, const std::string& name);

  kube::Api& api_;
  const std::string node_;
  std::map<std::string, std::optional<int>> counts_;  // by name; nullopt: exists, count unknown
};

// "n1.0123456789abcdef". Pure.
[[nodiscard]] std::string event_name(const NodeRef& node, const NodeEvent& event);

}  // namespace neuron::status
