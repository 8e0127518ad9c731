#pragma once

#include <cstdint>
#include <memory>

#include "agent/model/host_scan.h"

namespace neuron::model {

// One published state of the node: immutable once shared.
struct Snapshot {
  std::uint64_t number = 0;  // of the scan, from 1, never reused
  // From 1; one more when inventory, health, unreadable parts or users of a device have changed
  // (model::without_counters). Two snapshots of one generation differ by counters alone.
  std::uint64_t generation = 0;
  HostScan host;  // assessed (agent/health/assess.h)
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;  // never null once published

}  // namespace neuron::model
