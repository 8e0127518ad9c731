#pragma once

#include <functional>
#include <string>

#include "agent/base/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

// Options that several commands have, with one meaning.
namespace neuron::agent {

enum class Mode { device_plugin, dra };

// --mode device-plugin|dra, NEURON_AGENT_MODE. `take` is called with what was said, by flag or variable, else not at
// all.
void add_mode(CLI::App& command, std::function<void(Mode)> take, const std::string& help);

// --dra-driver-name, NEURON_AGENT_DRA_DRIVER_NAME. `name` holds the default.
void add_driver_name(CLI::App& command, std::string& name);

// A text option that `check` takes, or CLI11 names the flag and why not. Environment and type are the caller's to add.
CLI::Option* add_checked(CLI::App& command, const std::string& flag, std::string& value,
                         std::function<Result<void>(const std::string&)> check, const std::string& help);

// invalid_argument: "\"TEXT\" WHAT".
[[nodiscard]] Result<void> refuse_text(std::string_view text, const char* what);

}  // namespace neuron::agent
