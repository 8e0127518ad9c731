#include "agent/health/policy.h"

#include <utility>

#include "agent/health/device.h"
#include "agent/health/efa.h"
#include "agent/health/kernel_verdicts.h"

namespace neuron::health {
namespace {

using model::HostScan;
using model::NeuronDevice;

void evaluate_devices(HostScan& scan, HealthMemory& memory, SteadyTime now, HealthResult& result) {
  for (const NeuronDevice& device : scan.devices) {
    memory.device_nodes_seen = memory.device_nodes_seen || device.node_present;
  }
  result.missing = missing_everywhere(scan);
  const auto heartbeats = watch_heartbeats(scan, memory.heartbeats, now);
  const DeviceContext context{scan, result.missing, heartbeats, memory.device_nodes_seen, now};
  for (const NeuronDevice& device : scan.devices) {
    result.bases.push_back(basis_of(scan, device, heartbeats));
    DeviceVerdict verdict = verdict_on_device(context, device, result.bases.back(), memory.cores[device.index]);
    if (device.presence != model::Presence::present) {  // its health is the last verdict on it
      verdict.whole = with_known_fault(std::move(verdict.whole), device.health);
      verdict.cores.assign(verdict.cores.size(), verdict.whole);
    }
    result.devices.push_back(std::move(verdict.whole));
    result.cores.push_back(std::move(verdict.cores));
  }
  for (std::size_t i = 0; i < scan.devices.size(); ++i) forget_no_measurements(scan.devices[i], result.bases[i]);
}

}  // namespace

HealthResult evaluate(HostScan& scan, HealthMemory& memory, SteadyTime now) {
  HealthResult result;
  evaluate_devices(scan, memory, now, result);
  result.efas = verdicts_on_efas(scan, memory);
  result.node = verdict_on_node(scan, now);
  return result;
}

}  // namespace neuron::health
