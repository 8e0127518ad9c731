#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "agent/model/host_scan.h"

// Signal files that should give a value and do not, by health/signals.h and by what other devices show. Pure.
namespace neuron::health {

// Expected files that no device of one chip family shows.
struct MissingFiles {
  model::Family family = model::Family::trainium1;
  std::vector<std::string> devices;  // "neuron0", those that are there
  std::vector<std::string> paths;    // below neuron<N>/, cores as "neuron_core*/…"; never empty
};

// The files that no device of a family has, although the driver has them on it: they were moved, or the driver is
// broken. One entry per family that lacks any. Empty is normal.
[[nodiscard]] std::vector<MissingFiles> missing_everywhere(const model::HostScan& scan);

// "sys/class/neuron_device/neuron*/stats/hardware/x, stats/hardware/y", "missing on any of 16 devices, …".
[[nodiscard]] model::ReadProblem problem_of(const model::HostScan& scan, const MissingFiles& missing);

// Why the driver does not measure health on a device that should have health_status/: a sentence that names no device.
// nullopt: it does, or there is no such folder. `never_beat`: Heartbeat::never.
[[nodiscard]] std::optional<std::string> why_unmeasured(const model::HostScan& scan, const model::NeuronDevice& device,
                                                        bool never_beat);

// The recommended action, which differs for drivers that are known to keep their files elsewhere.
[[nodiscard]] std::string action_for_missing(const model::HostScan& scan);

// "sys/class/neuron_device/neuron3/": where the paths of a device's problems begin.
[[nodiscard]] std::string folder_of(const model::NeuronDevice& device);

// Files without a value on which the verdict on `device` rests: those that could not be read or were malformed
// (NeuronDevice::problems), then those that are missing although this driver has them on this chip or half of the
// devices of the same chip show them. Without missing_everywhere(). `scan` as it was before evaluate(). Empty is
// normal.
[[nodiscard]] std::vector<model::ReadProblem> unread_signals(const model::HostScan& scan,
                                                             const model::NeuronDevice& device);

}  // namespace neuron::health
