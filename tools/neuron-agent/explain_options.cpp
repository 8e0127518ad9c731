#include "tools/neuron-agent/explain_options.h"

#include <CLI/CLI.hpp>

#include "tools/neuron-agent/mode_options.h"

namespace neuron::agent {

void add_explain_options(CLI::App& command, ExplainOptions& options) {
  command.add_option("pod", options.pod, "Which pod; without a namespace the\nonly one of that name on this node")
      ->type_name("NAMESPACE/NAME")
      ->required();
  add_report_paths(command, options, "The kubelet's directory; with another root it has\nto be named");
  add_driver_name(command, options.dra_driver_name);
  add_report_form(command, options, "How to print the answer: text or json",
                  "The longest that the answer may take; a quarter of\nit for each question to the kubelet");
}

}  // namespace neuron::agent
