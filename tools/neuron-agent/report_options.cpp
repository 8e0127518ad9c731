#include "tools/neuron-agent/report_options.h"

#include <CLI/CLI.hpp>

#include "agent/base/parse.h"

namespace neuron::agent {

void add_report_paths(CLI::App& command, ReportOptions& options, const std::string& kubelet_dir_help) {
  command.add_option("--root", options.root, "Directory with the machine's sys, proc, dev; or\nan archive of it")
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
          kubelet_dir_help)
      ->envname("NEURON_AGENT_KUBELET_DIR")
      ->type_name("DIR")
      ->default_str(options.kubelet_dir);
}

void add_report_form(CLI::App& command, ReportOptions& options, const std::string& output_help,
                     const std::string& timeout_help) {
  command
      .add_option_function<std::string>(
          "--output",
          [&options](const std::string& word) {
            if (word != "text" && word != "json") {
              throw CLI::ValidationError("--output", "`" + printable(word) + "' is neither text nor json");
            }
            options.output = word == "json" ? ReportForm::json : ReportForm::text;
          },
          output_help)
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
          timeout_help)
      ->envname("NEURON_AGENT_TIMEOUT")
      ->type_name("TIME")
      ->default_str(std::to_string(options.timeout.count() / 1000) + "s");
}

}  // namespace neuron::agent
