#pragma once

#include <map>

#include "agent/model/host_scan.h"

// What left the machine, or hangs when it is read, stays listed while somebody may hold it: the kubelet does not
// survive a device that leaves while it is allocated. Pure: the earlier scans are an argument.
namespace neuron::core {

// What earlier scans saw, as the scanner gave it. Passive data, owned by whoever scans.
struct SeenBefore {
  std::map<int, model::NeuronDevice> devices;      // by index
  std::map<model::Bdf, model::EfaInterface> efas;  // once they had a name
  model::HostScan host;                            // of the newest scan, without its lists
};

// Puts the devices and interfaces of `before` that are gone back into their places in `scan`, marked as vanished and
// without values that nobody reads any more. An interface that lost its driver gets its last name back, so that the
// kubelet sees the same id turn unhealthy.
// What the scan left out (HostScan::unanswered) is as it was last seen: devices and interfaces that are not answering
// keep their facts and lose their signals; facts of the host keep their values and get a line in `problems`, as do the
// lists of interfaces, which keep all they had. Then stores in `before` what `scan` shows. Call it before complete().
void keep_last_seen(model::HostScan& scan, SeenBefore& before);

}  // namespace neuron::core
