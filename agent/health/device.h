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

// State shared by the verdicts on all devices of a scan.
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

// The verdict on a device that is missing or does not answer, of which `known` was known before: its reason stays where
// another instance alone cures it, since what cures less would hide it and the node's condition goes by it. `absent`
// stays where `known` is no such fault.
[[nodiscard]] model::Health with_known_fault(model::Health absent, const model::Health& known);

// Evidence for the verdict on a device besides its values.
[[nodiscard]] DeviceBasis basis_of(const model::HostScan& scan, const model::NeuronDevice& device,
                                   const std::map<int, Heartbeat>& heartbeats);

// Empties the signals that are no measurements: those that read all ones, everything of a device off the bus, and what
// the driver never measured.
void forget_no_measurements(model::NeuronDevice& device, const DeviceBasis& basis);

}  // namespace neuron::health
