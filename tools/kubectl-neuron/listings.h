#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "tools/kubectl-neuron/options.h"

namespace neuron::fleet {

// -o table|wide|json|csv.
void add_output(CLI::App& command, std::string& output);
[[nodiscard]] Output output_of(const std::string& text);

// The whole text of a command. Pure.
[[nodiscard]] std::string nodes_listing(const Fleet& fleet, Output output);
// `only_namespace`: "" = all.
[[nodiscard]] std::string pods_listing(const Fleet& fleet, Output output, const std::string& only_namespace);

}  // namespace neuron::fleet
