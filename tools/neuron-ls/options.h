#pragma once

#include <optional>
#include <string>
#include <variant>

#include "agent/base/result.h"

namespace neuron::ls {

// The official tool's flags, and --root. Passive data.
struct Options {
  bool wide = false;            // -w, --wide
  bool show_all_procs = false;  // -a, --show-all-procs
  bool topology = false;        // -t, --topology
  bool json = false;            // -j, --json-output; wins over --topology
  std::string root = "/";       // --root, else environment NEURON_LS_ROOT
};

// Either options or, for --help and --version, the text to print on stdout before leaving with success.
using Request = std::variant<Options, std::string>;

// Errors: invalid_argument, its message fit for people ("unknown flag `badflag'").
[[nodiscard]] Result<Request> parse_options(int argc, const char* const* argv);

}  // namespace neuron::ls
