#pragma once

#include <vector>

#include "tools/neuron-top/panels.h"
#include "tools/neuron-top/table.h"

namespace neuron::top {

// What is wrong, in lines of at most `columns` cells and at most `most` of them: the worst verdict with its reason and
// what to do about it, how many devices are missing, and why utilization is unknown where its heading has no room for
// that. Long ones take a second line while there is room. Empty when nothing is wrong. Pure.
[[nodiscard]] std::vector<TableCell> news(const Scene& scene, int columns, int most);

}  // namespace neuron::top
