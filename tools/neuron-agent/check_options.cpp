#include "tools/neuron-agent/check_options.h"

#include <CLI/CLI.hpp>

#include "agent/base/parse.h"

namespace neuron::agent {

void add_check_options(CLI::App& command, CheckOptions& options) {
  command.add_option("--root", options.root, "Directory that holds the machine's sys, proc, dev;\nor an archive of it")
      ->envname("NEURON_AGENT_ROOT")
      ->type_name("DIR")
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--kubelet-dir",
          [&options](const std::string& directory) {
            options.kubelet_dir = directory;
            options.kubelet_dir_set = true;
          },
          "The kubelet's directory; with another root it is\nlooked at only when named here")
      ->envname("NEURON_AGENT_KUBELET_DIR")
      ->type_name("DIR")
      ->default_str(options.kubelet_dir);
  command
      .add_option("--cdi-dir", options.cdi_dir,
                  "Where DRA mode writes the specs of claims\n(default: var/run/cdi of the root)")
      ->envname("NEURON_AGENT_CDI_DIR")
      ->type_name("DIR");
  add_mode(
      command, [&options](Mode mode) { options.mode = mode; },
      "Mode that the node is meant for; dra: look at what\nclaims need, too, as anyway where their driver ran");
  add_driver_name(command, options.dra_driver_name);
  command
      .add_option_function<std::string>(
          "--output",
          [&options](const std::string& word) {
            if (word != "text" && word != "json") {
              throw CLI::ValidationError("--output", "`" + printable(word) + "' is neither text nor json");
            }
            options.output = word == "json" ? CheckOptions::Form::json : CheckOptions::Form::text;
          },
          "How to print the findings: text or json")
      ->envname("NEURON_AGENT_OUTPUT")
      ->type_name("FORM")
      ->default_str("text");
  command
      .add_option_function<std::string>(
          "--timeout",
          [&options](const std::string& text) {
            const auto parsed = parse_duration(text);
            if (!parsed) throw CLI::ValidationError("--timeout", parsed.error().message);
            options.timeout = *parsed;
          },
          "The longest that the check may take; half of it is\nfor libfabric")
      ->envname("NEURON_AGENT_TIMEOUT")
      ->type_name("TIME")
      ->default_str(std::to_string(options.timeout.count() / 1000) + "s");
  command.add_flag("--no-fabric", options.no_fabric, "Do not ask libfabric what it sees")
      ->envname("NEURON_AGENT_NO_FABRIC");
}

}  // namespace neuron::agent
