#pragma once

#include <map>

#include "agent/base/clock.h"
#include "agent/model/host_scan.h"

// Verdicts on devices, cores and the node from the errors of the kernel log (HostScan::kernel_log). Pure.
namespace neuron::health {

// How long a hang of collectives is held against a device: it is mostly another node's fault, and the log does not show
// its end. All other errors hold until the driver is loaded again or the chip is another one.
inline constexpr std::chrono::minutes kHangHolds{10};

struct KernelFaults {
  model::Health of_device;                // the gravest; healthy where there is none
  std::map<int, model::Health> of_cores;  // physical core -> a fault of its own
};

// Of the lines that name `device`, which is completed. `now`: of the clock that counts from boot, as the kernel's does;
// on a captured host it says nothing.
[[nodiscard]] KernelFaults find_kernel_faults(const model::HostScan& scan, const model::NeuronDevice& device,
                                              SteadyTime now);

// Of the lines that name no device: healthy where there are none; not assessed where the log is not read.
[[nodiscard]] model::Health verdict_on_node(const model::HostScan& scan, SteadyTime now);

}  // namespace neuron::health
