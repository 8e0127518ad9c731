#pragma once

#include <optional>
#include <string>

#include "agent/model/host_scan.h"

namespace neuron::ls {

// Why no device can be listed, in two lines for people.
struct Absence {
  std::string what;    // what is missing and where that was seen
  std::string action;  // what to do about it
};

// What the kernel refuses to show to this user. Nothing of it in the usual case.
struct Refusals {
  bool class_directory = false;  // sys/class/neuron_device may not be listed
  bool root_only_files = false;  // core_count, connected_devices: readable by root only up to driver 2.27
};

// nullopt when at least one device can be listed: its node is below dev/, and its cores and neighbours are known, be it
// from the tables of the instance type. `root` is for the paths in the text. Pure.
[[nodiscard]] std::optional<Absence> explain_absence(const model::HostScan& scan, const std::string& root,
                                                     const Refusals& refusals = {});

}  // namespace neuron::ls
