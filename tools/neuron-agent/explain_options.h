#pragma once

#include <chrono>
#include <string>

#include "agent/core/pool_names.h"

namespace CLI {
class App;
}

namespace neuron::agent {

// Everything `neuron-agent explain pod` can be told, parsed once, then const. Flag over environment over default.
struct ExplainOptions {
  enum class Form { text, json };

  std::string pod;                               // "namespace/name", or a name that only one pod of the node has
  std::string root = "/";                        // --root, NEURON_AGENT_ROOT; a directory or an archive
  std::string kubelet_dir = "/var/lib/kubelet";  // --kubelet-dir
  bool kubelet_dir_set = false;  // named by flag or variable; with another root than this machine it has to be
  std::string dra_driver_name{core::kDefaultDriverName};  // --dra-driver-name
  Form output = Form::text;                               // --output text|json
  std::chrono::milliseconds timeout{10000};  // --timeout: for everything; a quarter for each question to the kubelet
};

// Adds the flags and the name of `explain pod` to a CLI11 command, writing into `options`, which must outlive the
// parse.
void add_explain_options(CLI::App& command, ExplainOptions& options);

}  // namespace neuron::agent
