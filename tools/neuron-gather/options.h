#pragma once

#include <string>
#include <variant>

#include "agent/base/result.h"

namespace neuron::gather {

// Passive data.
struct Options {
  std::string root = "/";      // --root, else environment NEURON_GATHER_ROOT: a directory or an archive
  std::string output;          // -o, --output, else environment NEURON_GATHER_OUTPUT; "" = a name made of type and time
  bool with_commands = false;  // --with-commands, environment NEURON_GATHER_WITH_COMMANDS
  bool anonymise = false;      // --anonymise, environment NEURON_GATHER_ANONYMISE
};

// Either options or, for --help and --version, the text to print on stdout before leaving with success.
using Request = std::variant<Options, std::string>;

// Errors: invalid_argument, its message fit for people.
[[nodiscard]] Result<Request> parse_options(int argc, const char* const* argv);

}  // namespace neuron::gather
