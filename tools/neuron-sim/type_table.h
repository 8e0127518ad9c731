#pragma once

#include <string>

namespace neuron::sim {

// The text of `neuron-sim node --list`: one line per instance type of the catalogue, in its order.
[[nodiscard]] std::string type_table();

}  // namespace neuron::sim
