#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/health/assess.h"

// The health policy of Neuron devices and their cores. Pure.
namespace neuron::health {

struct DeviceVerdict {
  model::Health whole;               // the device's own fault, else that of its worst core
  std::vector<model::Health> cores;  // [M] of neuron_core<M>; empty where the core count is unknown
};

// Inputs common to all devices of a scan.
struct DeviceContext {
  const model::HostScan& scan;                 // completed
  const std::vector<MissingFiles>& missing;    // missing_everywhere(scan)
  const std::map<int, Heartbeat>& heartbeats;  // watch_heartbeats
  bool nodes_seen = false;                     // HealthMemory::device_nodes_seen
  SteadyTime now{};                            // when the scan was taken
};

// `basis`: basis_of(scan, device). Updates `baselines` of its cores.
[[nodiscard]] DeviceVerdict verdict_on_device(const DeviceContext& context, const model::NeuronDevice& device,
                                              const DeviceBasis& basis,
                                              std::map<int, HealthMemory::CoreBaseline>& baselines);

// The verdict on a device that is missing or does not answer: `absent`, but with the reason of its earlier verdict
// `known` where only another instance cures that, since a milder action would hide it from the node's condition.
[[nodiscard]] model::Health with_known_fault(model::Health absent, const model::Health& known);

// The basis of the verdict on a device besides its values.
[[nodiscard]] DeviceBasis basis_of(const model::HostScan& scan, const model::NeuronDevice& device,
                                   const std::map<int, Heartbeat>& heartbeats);

// Empties signals that are no measurements: all ones, everything of a device off the bus, and values that the driver
// never measured.
void forget_no_measurements(model::NeuronDevice& device, const DeviceBasis& basis);

}  // namespace neuron::health
