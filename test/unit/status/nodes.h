#pragma once

#include <memory>
#include <string>

#include "agent/health/reasons.h"
#include "agent/model/snapshot.h"

// Assessed hosts for the tests of agent/status.
namespace neuron::status {

// A trn1.32xlarge with that many of its devices and interfaces, all well.
inline model::HostScan well_host(int devices = 16, int efas = 8) {
  model::HostScan host;
  host.instance_type = "trn1.32xlarge";
  host.driver_version = "2.21.37.0";
  host.layout = model::DriverLayout::health_v2;
  host.lnc = model::Sourced<int>{1, model::Origin::assumed};
  for (int index = 0; index < devices; ++index) {
    model::NeuronDevice& device = host.devices.emplace_back();
    device.index = index;
    device.family = model::Family::trainium1;
    device.physical_cores = model::Sourced<int>{2, model::Origin::live};
    device.health = health::healthy();
  }
  for (int index = 0; index < efas; ++index) {
    model::EfaInterface& efa = host.efas.emplace_back();
    efa.bdf.bus = static_cast<std::uint8_t>(0x10 + index);
    efa.name = "rdmap" + std::to_string(16 + index) + "s25";
    efa.health = health::healthy();
  }
  return host;
}

inline void set_health(model::HostScan& host, int device, model::Health health) {
  host.devices[static_cast<std::size_t>(device)].health = std::move(health);
}

// Cured by a reload of the driver, so no reason to count the node as a whole as unhealthy.
inline model::Health repairable(int device, int errors = 1) {
  return health::verdict(health::reasons::kMemEccRepairable,
                         "neuron" + std::to_string(device) + ": " + std::to_string(errors) + " repairable HBM errors");
}
// Cured by another instance alone.
inline model::Health broken(int device) {
  return health::verdict(health::reasons::kSramEccUncorrected,
                         "neuron" + std::to_string(device) + ": 1 uncorrected SRAM errors");
}

inline model::SnapshotPtr snapshot_of(model::HostScan host) {
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = snapshot->generation = 1;
  snapshot->host = std::move(host);
  return snapshot;
}

}  // namespace neuron::status
