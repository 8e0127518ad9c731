#pragma once

#include <vector>

#include "agent/allocator/allocator.h"

// How much of what is free one container could still have: the measure of fragmentation. Pure.
namespace neuron::allocator {

// The most of the `free` devices that the chooser would give as a set that the runtime takes: an aligned group of a
// torus, a run of a ring or line, all of them where the fabric has no such shapes or is not known. 0: none is free.
[[nodiscard]] int largest_of_devices(const NodeTopology& topology, const std::vector<int>& free);

// The most of the `free` cores that are one range as the runtime in a container counts.
[[nodiscard]] int largest_of_cores(const NodeTopology& topology, const std::vector<int>& free);

}  // namespace neuron::allocator
