#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "test/bench/fragmentation_fabric.h"

// The choosers that are compared. Each is asked only when the counts suffice, and answers with a placement of the right
// size (which may be one the runtime refuses), or with an empty one where its rules refuse the request.
namespace neuron::bench {

struct Policy {
  std::string name;
  std::function<Placement(const Fabric&, const Occupancy&, const Request&)> place;
};

// allocator::choose_devices, choose_cores and choose_efas, asked as the agent asks them, in the kubelet's order of
// calls.
[[nodiscard]] Policy ours();
// The kubelet takes the first units of a Go map: any of them. EFAs likewise.
[[nodiscard]] Policy kubelet_order(std::uint64_t seed);
// Lowest indices that are free, units and EFAs.
[[nodiscard]] Policy lowest_index();
// The official scheduler: torus: 1, 4, 8, 16 devices in aligned groups, other counts refused; ring and line: the first
// run of consecutive ids (no wrap); cores: the first range of consecutive global ids. It does not know EFAs: the
// lowest.
[[nodiscard]] Policy aligned_first_fit();
// As GPU plugins do: from every free unit, add the one with the greatest sum of pairwise weights (same device, then
// fewer hops), keep the best set. EFAs: those of the devices' NUMA nodes first, as the Topology Manager would prefer.
[[nodiscard]] Policy pairwise_greedy();

}  // namespace neuron::bench
