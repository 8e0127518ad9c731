#pragma once

#include <string>
#include <vector>

#include "agent/model/snapshot_diff.h"

// What has become of devices and interfaces, in the terms of events on a Node. Pure.
namespace neuron::status {

// Passive data.
struct NodeEvent {
  bool is_warning = false;  // type Warning, else Normal
  std::string unit;         // "neuron3"; an interface's RDMA name or PCI address
  std::string reason;       // CamelCase of the reason code; "Healthy"
  std::string message;      // the unit, the sentence and the action; printable, at most 1 KiB
  friend bool operator==(const NodeEvent&, const NodeEvent&) = default;
};

enum class Since {
  start,  // the first look of a process: what is well is not worth a word
  before  // the last look
};

// One for each unit whose state or reason is another; a counter that moves on in a sentence is none.
[[nodiscard]] std::vector<NodeEvent> events_of(const model::SnapshotDiff& changes, Since since);

}  // namespace neuron::status
