#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "agent/core/pool_names.h"
#include "tools/neuron-agent/mode_options.h"

namespace CLI {
class App;
}

namespace neuron::agent {

// Everything `neuron-agent check` can be told, parsed once, then const. Flag over environment over default.
struct CheckOptions {
  enum class Form { text, json };

  std::string root = "/";                        // --root, NEURON_AGENT_ROOT; a directory or an archive
  std::string kubelet_dir = "/var/lib/kubelet";  // --kubelet-dir
  bool kubelet_dir_set = false;  // named by flag or variable; else it is looked at only beside a live root
  std::string cdi_dir;           // --cdi-dir; "": var/run/cdi below the root
  std::optional<Mode> mode;      // --mode; dra: what claims need counts, even where no driver ever ran
  std::string dra_driver_name{core::kDefaultDriverName};  // --dra-driver-name
  Form output = Form::text;                               // --output text|json
  std::chrono::milliseconds timeout{10000};               // --timeout: for everything; half of it for libfabric
  bool no_fabric = false;                                 // --no-fabric: do not ask libfabric
};

// Adds the flags of `check` to a CLI11 command, writing into `options`, which must outlive the parse.
void add_check_options(CLI::App& command, CheckOptions& options);

}  // namespace neuron::agent
