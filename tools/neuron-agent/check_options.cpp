#include "tools/neuron-agent/check_options.h"

#include <CLI/CLI.hpp>

namespace neuron::agent {

void add_check_options(CLI::App& command, CheckOptions& options) {
  add_report_paths(command, options,
                   "The kubelet's directory; with another root it is\nlooked at only when named here");
  command
      .add_option("--cdi-dir", options.cdi_dir,
                  "Where DRA mode writes the specs of claims\n(default: var/run/cdi of the root)")
      ->envname("NEURON_AGENT_CDI_DIR")
      ->type_name("DIR");
  add_mode(
      command, [&options](Mode mode) { options.mode = mode; },
      "Mode that the node is meant for; dra: look at what\nclaims need, too, as anyway where their driver ran");
  add_driver_name(command, options.dra_driver_name);
  add_report_form(command, options, "How to print the findings: text or json",
                  "The longest that the check may take; half of it is\nfor libfabric");
  command.add_flag("--no-fabric", options.no_fabric, "Do not ask libfabric what it sees")
      ->envname("NEURON_AGENT_NO_FABRIC");
}

}  // namespace neuron::agent
