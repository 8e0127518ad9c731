#pragma once

#include <optional>
#include <string>

#include "tools/neuron-agent/mode_options.h"
#include "tools/neuron-agent/report_options.h"

namespace CLI {
class App;
}

namespace neuron::agent {

// All options of `neuron-agent check`, parsed once, then const. Flag over environment over default.
struct CheckOptions : ReportOptions {  // the kubelet's directory, not named: read only beside a live root
  std::string cdi_dir;                 // --cdi-dir; "": var/run/cdi below the root
  std::optional<Mode> mode;            // --mode; dra: what claims need counts, even where no driver ever ran
  bool no_fabric = false;              // --no-fabric: do not ask libfabric, which else has half of the timeout
};

// Adds the flags of `check` to a CLI11 command, writing into `options`, which must outlive the parse.
void add_check_options(CLI::App& command, CheckOptions& options);

}  // namespace neuron::agent
