#pragma once

#include <map>

#include "agent/model/host_scan.h"

// A device or interface that left the machine, or hangs when it is read, stays listed while a container may hold it:
// the kubelet does not survive the removal of an allocated device. Pure: the earlier scans are an argument.
namespace neuron::core {

// Results of earlier scans, as the scanner returned them. Passive data, owned by the caller of the scans.
struct SeenBefore {
  std::map<int, model::NeuronDevice> devices;      // by index
  std::map<model::Bdf, model::EfaInterface> efas;  // with a name
  model::HostScan host;                            // of the newest scan, without its lists
};

// Adds the devices and interfaces of `before` that `scan` lacks in their places, marked as vanished and without values
// that can no longer be read. An interface that lost its driver gets its last name, so that the kubelet sees the same
// id become unhealthy. Parts that the scan left out (HostScan::unanswered) keep their last values: devices and
// interfaces keep their facts and lose their signals; facts of the host and the lists of interfaces stay, with a line
// in `problems`. Then stores `scan` in `before`. Call it before complete().
void keep_last_seen(model::HostScan& scan, SeenBefore& before);

}  // namespace neuron::core
