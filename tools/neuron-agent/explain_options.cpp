#include "tools/neuron-agent/explain_options.h"

#include <CLI/CLI.hpp>

#include "agent/base/parse.h"

namespace neuron::agent {

void add_explain_options(CLI::App& command, ExplainOptions& options) {
  command.add_option("pod", options.pod, "Which pod; without a namespace the\nonly one of that name on this node")
      ->type_name("NAMESPACE/NAME")
      ->required();
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
          "The kubelet's directory; with another root it has\nto be named")
      ->envname("NEURON_AGENT_KUBELET_DIR")
      ->type_name("DIR")
      ->default_str(options.kubelet_dir);
  command.add_option("--dra-driver-name", options.dra_driver_name, "Name of the driver of claims")
      ->envname("NEURON_AGENT_DRA_DRIVER_NAME")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option_function<std::string>(
          "--output",
          [&options](const std::string& word) {
            if (word != "text" && word != "json") {
              throw CLI::ValidationError("--output", "`" + printable(word) + "' is neither text nor json");
            }
            options.output = word == "json" ? ExplainOptions::Form::json : ExplainOptions::Form::text;
          },
          "How to print the answer: text or json")
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
          "The longest that the answer may take; a quarter of\nit for each question to the kubelet")
      ->envname("NEURON_AGENT_TIMEOUT")
      ->type_name("TIME")
      ->default_str(std::to_string(options.timeout.count() / 1000) + "s");
}

}  // namespace neuron::agent
