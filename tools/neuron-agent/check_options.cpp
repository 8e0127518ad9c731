#include "tools/neuron-agent/check_options.h"

#include <CLI/CLI.hpp>

namespace neuron::agent {

void add_check_options(CLI::App& command, CheckOptions& options) {
  add_report_paths(command, options, "The kubelet's directory; with another root it is\nexamined only when given here");
  command
      .add_option("--cdi-dir", options.cdi_dir,
                  "Directory of the CDI specs of claims\n(default: var/run/cdi of the root)")
      ->envname("NEURON_AGENT_CDI_DIR")
      ->type_name("DIR");
  add_mode(
      command, [&options](Mode mode) { options.mode = mode; },
      "Intended mode of the node; dra: also check what\nclaims need (automatic where their driver ran)");
  add_driver_name(command, options.dra_driver_name);
  add_report_form(command, options, "Format of the findings: text or json",
                  "Time limit of the check; half of it is for\nlibfabric");
  command.add_flag("--no-fabric", options.no_fabric, "Do not query libfabric")->envname("NEURON_AGENT_NO_FABRIC");
}

}  // namespace neuron::agent
