#pragma once

#include <map>
#include <vector>

#include "agent/health/policy.h"

// The part of the health policy that is about Neuron devices. Pure.
namespace neuron::health {

struct DeviceVerdict {
  model::Health whole;               // the device's own fault, else that of its worst core
  std::vector<model::Health> cores;  // [M] of neuron_core<M>; empty where the core count is unknown
};

// What all devices of a scan are measured by.
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

// What the verdict on a device rests on besides its values.
[[nodiscard]] DeviceBasis basis_of(const model::HostScan& scan, const model::NeuronDevice& device);

// Empties the signals that read 65535, all ones, as those of a device that left the bus do: they are no counts.
void forget_all_ones(model::NeuronDevice& device);

}  // namespace neuron::health
