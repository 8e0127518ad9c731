#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/model/host_scan.h"

// Changes of devices and interfaces as events on a Node. Pure.
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

}  // namespace neuron::status
