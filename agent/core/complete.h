#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "agent/model/host_scan.h"
#include "agent/model/usage.h"

// Values of a scan from other sources: of earlier scans, assumed ones, and impossible ones, which become unknown. Pure
// functions; any thread.
namespace neuron::core {

// Before the first scan.
[[nodiscard]] inline model::HostScan unread_host() {
  model::HostScan host;
  host.lnc_is_unread = host.ultraserver_is_unread = true;
  return host;
}

// Results of earlier scans, as the scanner returned them. Passive data, owned by the caller of the scans.
struct SeenBefore {
  std::map<int, model::NeuronDevice> devices;      // by index
  std::map<model::Bdf, model::EfaInterface> efas;  // with a name
  model::HostScan host = unread_host();            // of the newest scan, without its lists
};

// A device or interface that left the machine, or hangs when it is read, stays listed while a container may hold it:
// the kubelet does not survive the removal of an allocated device. Adds the devices and interfaces of `before` that
// `scan` lacks in their places, marked as vanished, or as unread where their list is one of HostScan::unread_lists, and
// without values that can no longer be read. An interface that lost its driver gets its last name, so that the kubelet
// sees the same id become unhealthy. Parts that the scan left out (HostScan::unanswered) keep their last values:
// devices and interfaces keep their facts and lose their signals; facts of the host and the lists of interfaces stay,
// with a line in `problems`. Then stores `scan` in `before`. Call it before complete().
void keep_last_seen(model::HostScan& scan, SeenBefore& before);

// Fills values that the host does not show from the catalogue, marked `assumed`: neighbours (also when the driver
// blanked them because a device is missing; a non-empty live list is kept), numa_node and cpus (only where
// numa_is_known), physical_cores, memory_bytes, lnc, and bdf where bdf_is_stable. Never overwrites a live value,
// except for an LNC that the devices do not support: it is ignored, with a line of problems. No LNC is assumed for
// devices with a choice while its file is unread (HostScan::lnc_is_unread). Unknown instance types: only what the
// family fixes (core count, memory, LNC). A NUMA node that the machine does not have is not assumed. Calls
// forget_impossible_memory().
[[nodiscard]] model::HostScan complete(model::HostScan scan);

// Bytes; more than any machine or device has. The bound where the size is unknown; the sum of thousands of values below
// it still fits into 64 bits.
inline constexpr std::uint64_t kMoreThanAnyMemory = std::uint64_t{1} << 50U;

// Memory counters that cannot be true become unknown: those above the device's memory (NeuronDevice::memory_bytes), or
// above the instance type's for host memory. A write to such a counter resets it to zero, and memory freed after that
// takes it below, which reads as almost 2^64 (docs/reference/driver.md#reading-counters). A counter of a core is named
// in the device's problems. `scan` has the values of complete().
void forget_impossible_memory(model::HostScan& scan);

// Treats a sample alike; the devices' memory is from `scan`, the machine's from the sample.
void forget_impossible_memory(model::UsageSample& sample, const model::HostScan& scan);

// Adds to a sum, which becomes unknown when one part is, or on overflow.
inline void add_bytes(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& part) {
  std::uint64_t result = 0;
  if (sum && part && !__builtin_add_overflow(*sum, *part, &result))
    sum = result;
  else
    sum.reset();
}

}  // namespace neuron::core
