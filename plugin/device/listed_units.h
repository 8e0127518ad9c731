#pragma once

#include <string>
#include <string_view>
#include <vector>

// Which Neuron units the kubelet was offered last, from its checkpoint (checkpoint.h): for a program that looks at a
// node without an agent's help. Foreign text.
namespace neuron::plugin {

// Ids in RegisteredDevices, ascending, each once; above 65535 they do not count.
struct ListedUnits {
  std::vector<int> devices;  // of neuron and neurondevice
  std::vector<int> cores;    // of neuroncore
};

// What is missing or of another type is left out; text that is no checkpoint gives nothing.
[[nodiscard]] ListedUnits parse_listed_units(std::string_view checkpoint);

// Of the file at `path`; nothing when it cannot be read. Blocks on file reads.
[[nodiscard]] ListedUnits read_listed_units(const std::string& path);

}  // namespace neuron::plugin
