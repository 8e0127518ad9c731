#pragma once

#include <string>

#include "tools/neuron-agent/report_options.h"

namespace CLI {
class App;
}

namespace neuron::agent {

// All options of `neuron-agent explain pod`, parsed once, then const. Flag over environment over default.
struct ExplainOptions : ReportOptions {  // with another root than this machine the kubelet's directory has to be named
  std::string pod;                       // "namespace/name", or a name that only one pod of the node has
};

// Adds the flags and the name of `explain pod` to a CLI11 command, writing into `options`, which must outlive the
// parse.
void add_explain_options(CLI::App& command, ExplainOptions& options);

}  // namespace neuron::agent
