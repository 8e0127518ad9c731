#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/host/fs_root.h"
#include "agent/model/device.h"

namespace neuron::host {

// Answers of the Neuron driver that are no files (docs/fixtures.md#recorded-answers). Every member nullopt = the driver
// did not answer, the normal case in an unprivileged pod.
struct DriverAnswers {
  std::optional<model::Bdf> bdf;                         // ioctl DEVICE_BDF_EXT (106), node opened O_WRONLY
  std::optional<std::vector<model::Process>> processes;  // ioctl 7 needs an attaching open: recorded answers only
  std::optional<std::vector<int>> logical_to_physical;   // ioctl 120, O_WRONLY; [logical position] = physical core
  std::vector<model::ReadProblem> problems;              // malformed answers
  friend bool operator==(const DriverAnswers&, const DriverAnswers&) = default;
};

// Asks about one device: on a live root by ioctl on dev/neuron<index> opened O_WRONLY|O_NONBLOCK, else from
// neuron-ioctl/neuron<index>.json (bounded to 1 MiB). Any thread; may block inside the driver.
[[nodiscard]] DriverAnswers query_driver(const FsRoot& root, int device_index);

}  // namespace neuron::host
