#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/base/result.h"
#include "agent/core/hardware.h"

namespace neuron::ls {

enum class Format { table, json, csv, svg };

// The official tool's flags and those of this project; each of the latter may also be set in the environment, as
// NEURON_LS_<OPTION>. Passive data.
struct Options {
  bool wide = false;              // -w, --wide
  bool show_all_procs = false;    // -a, --show-all-procs
  bool topology = false;          // -t, --topology
  bool json = false;              // -j, --json-output: the official array; wins over --topology and --output-format
  Format format = Format::table;  // --output-format
  bool health = false;            // --health
  bool efa = false;               // --efa
  bool pods = false;              // --pods
  std::vector<int> devices;       // --device, as numbered in the listing; ascending; empty = all
  std::optional<std::chrono::milliseconds> watch;         // --watch; 100 ms to one day
  std::string kubelet_dir;                                // --kubelet-dir; default below the root
  std::string dra_driver_name{core::kDefaultDriverName};  // --dra-driver-name: whose claims --pods shows
  std::string root = "/";                                 // --root
};

// Either options or, for --help and --version, the text to print on stdout before leaving with success.
using Request = std::variant<Options, std::string>;

// Errors: invalid_argument with a message for the user ("unknown flag `badflag'"); it names the variable of the
// environment where the option was not on the command line.
[[nodiscard]] Result<Request> parse_options(int argc, const char* const* argv);

}  // namespace neuron::ls
