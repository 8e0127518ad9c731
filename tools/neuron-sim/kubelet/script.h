#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/base/result.h"
#include "tools/neuron-sim/kubelet/pod.h"

// The little language of `neuron-sim kubelet`: one command per line, "#" begins a comment line.
namespace neuron::sim {

enum class Verb { pod, remove, start, list, show, wait, restart, down, up, advance, echo, help, quit };

// Passive data; which members count depends on the verb.
struct Command {
  Verb verb = Verb::help;
  PodSpec pod;                           // pod; remove: name and ns; start: name, ns and at most one container
  std::map<std::string, int> counts;     // wait: resource → allocatable
  std::chrono::milliseconds duration{};  // advance
  std::string text;                      // echo
};

// neuron, neuroncore, neurondevice and efa stand for the full resource names; other text is itself.
[[nodiscard]] std::string full_resource_name(std::string_view name);

// The other way round: "neuron" for aws.amazon.com/neuron; other text is itself.
[[nodiscard]] std::string short_resource_name(std::string_view name);

// "RESOURCE=N" with N from 0 to 100000. Errors: invalid_argument.
[[nodiscard]] Result<std::pair<std::string, int>> parse_count(std::string_view text);

// nullopt for an empty line or a comment. Errors: invalid_argument, in words that quote the wrong part.
[[nodiscard]] Result<std::optional<Command>> parse_command(std::string_view line);

[[nodiscard]] std::string_view script_help();  // at most 80 columns

}  // namespace neuron::sim
