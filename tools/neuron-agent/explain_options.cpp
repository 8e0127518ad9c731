#include "tools/neuron-agent/explain_options.h"

#include <CLI/CLI.hpp>

#include "tools/neuron-agent/mode_options.h"

namespace neuron::agent {

void add_explain_options(CLI::App& command, ExplainOptions& options) {
  command.add_option("pod", options.pod, "The pod; without a namespace the only one\nof that name on this node")
      ->type_name("NAMESPACE/NAME")
      ->required();
  add_report_paths(command, options, "The kubelet's directory; required with another\nroot");
  add_driver_name(command, options.dra_driver_name);
  add_report_form(command, options, "Format of the answer: text or json",
                  "Time limit; a quarter of it for each query to the\nkubelet");
}

}  // namespace neuron::agent
