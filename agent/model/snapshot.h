#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/model/host_scan.h"

namespace neuron::model {

// One published state of the node: immutable once shared.
struct Snapshot {
  std::uint64_t number = 0;  // of the scan, from 1, never reused
  // Starts at 1 and grows by one when inventory, health, unreadable parts or users of a device change
  // (model::without_counters). Two snapshots of one generation differ by counters alone.
  std::uint64_t generation = 0;
  HostScan host;  // assessed (agent/health/assess.h)
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;  // never null once published

// `host` without the values that change from scan to scan on a healthy node: signals, counters of cores and interfaces,
// memory in use. Health, which is assessed from them, stays. A new generation (model::Snapshot::generation) begins when
// what is left differs: inventory, health, what cannot be read, or the processes that have a device open.
[[nodiscard]] HostScan without_counters(HostScan host);

// A device, an interface, or the node itself (KernelLog::node_health).
struct PartChange {
  enum class Kind {
    appeared,  // it was not there, or had vanished
    left,      // it has vanished, or is no longer listed
    health,    // it was and is there, and its health is another
  };
  Kind kind = Kind::health;
  std::string name;  // "neuron3"; the RDMA name of an interface, else its PCI address; "node"
  Health before;     // not assessed where it was not listed
  Health after;      // with reason, sentence and action; not assessed where it is not listed
  friend bool operator==(const PartChange&, const PartChange&) = default;
};

struct SnapshotDiff {
  std::vector<PartChange> units;  // devices by index, then interfaces by address, then the node
  bool problems = false;          // what cannot be read is something else
  friend bool operator==(const SnapshotDiff&, const SnapshotDiff&) = default;
};

// The changes between two assessed hosts; an empty `before` means that everything appears.
[[nodiscard]] SnapshotDiff diff(const HostScan& before, const HostScan& after);

}  // namespace neuron::model
