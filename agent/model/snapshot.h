#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "agent/model/health.h"
#include "agent/model/host_scan.h"

namespace neuron::model {

// One published state of the node: immutable once shared, numbered from 1, never reused.
struct Snapshot {
  std::uint64_t number = 0;
  HostScan host;
  std::vector<Health> device_health;  // parallel to host.devices: each as a whole, broken when one of its cores is
  // Parallel to host.devices: the verdict on each physical core, [M] of neuron_core<M>. The device's own where the
  // fault is not the core's; empty where the core count is unknown.
  std::vector<std::vector<Health>> core_health;
  std::vector<Health> efa_health;  // parallel to host.efas
};

using SnapshotPtr = std::shared_ptr<const Snapshot>;  // never null once published

}  // namespace neuron::model
