#pragma once

#include <string>
#include <vector>

namespace neuron::model {

// Kind of the unreadable part, for decisions; sentence() is the text.
enum class ProblemKind {
  file,               // a file, link or folder that cannot be read, or whose text makes no sense
  health_file,        // the same of a file that a device's health rests on (agent/health/signals.h)
  lnc_file,           // opt/aws/neuron/logical_nc_config: not read, not understood, or not for these chips
  no_device,          // the driver is loaded but shows no device
  unknown_layout,     // the driver's sysfs layout is unknown
  absent_neighbours,  // a device names neighbours that are not there; `detail` is their list, "3,7"
  missing_signals,    // health files that no device of a chip shows though the driver should have them
  unanswered,         // a part of the scan that has not returned; it has no path
};

// Something of the machine that could not be read though it should, or made no sense. Passive data.
struct ReadProblem {
  ProblemKind kind = ProblemKind::file;
  std::string path;    // below the root; of several files a pattern; "" where there is none
  std::string detail;  // the problem, printable
  friend bool operator==(const ReadProblem&, const ReadProblem&) = default;
};

// The problem without the path: "not a number", "names missing devices: 3,7".
[[nodiscard]] std::string what_is_wrong(const ReadProblem& problem);

// One line: "<path>: <problem>".
[[nodiscard]] std::string sentence(const ReadProblem& problem);
[[nodiscard]] std::vector<std::string> sentences(const std::vector<ReadProblem>& problems);  // in their order

}  // namespace neuron::model
