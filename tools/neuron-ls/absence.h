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

// nullopt when at least one device can be opened here (its node is below dev/). `root` is for the paths in the text.
// Pure.
[[nodiscard]] std::optional<Absence> explain_absence(const model::HostScan& scan, const std::string& root);

}  // namespace neuron::ls
