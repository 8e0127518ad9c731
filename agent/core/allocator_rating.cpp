#include <algorithm>
#include <bit>

#include "agent/core/allocator_graph.h"

namespace neuron::core::allocation {

int locality_class(const NodeTopology& topology, const NodeTopology::Device& device, int efa) {
  if (std::find(device.near_efas.begin(), device.near_efas.end(), efa) != device.near_efas.end()) return 0;
  const auto& nic = topology.efas[static_cast<std::size_t>(efa)];
  if (nic.pci_group >= 0 && nic.pci_group == device.pci_group) return 1;
  return nic.numa_node >= 0 && nic.numa_node == device.numa_node ? 2 : 3;
}

Rater::Rater(const DeviceGraph& graph, Mask free, const std::vector<int>& prefer_efas) : graph_(graph), free_(free) {
  const auto count = static_cast<int>(graph.topology().efas.size());
  for (const int efa : prefer_efas) {
    if (efa < 0 || efa >= count) continue;
    Rings rings{};
    for (int i = 0; i < graph.size(); ++i) {
      const int distance = locality_class(graph.topology(), graph.device(i), efa);
      for (int ring = distance; ring < 3; ++ring) rings[static_cast<std::size_t>(ring)] |= bit(i);
    }
    efas_.push_back(rings);
  }
}

// Each wanted EFA to its closest device of the set, each device to its closest wanted EFA.
int Rater::distance_to_efas(Mask devices) const {
  int distance = 0;
  Rings reached{};
  for (const Rings& rings : efas_) {
    for (std::size_t i = 0; i < rings.size(); ++i) {
      if ((devices & rings[i]) == 0) ++distance;
      reached[i] |= rings[i];
    }
  }
  if (efas_.empty()) return 0;
  for (const Mask ring : reached) distance += std::popcount(devices & ~ring);
  return distance;
}

int Rater::whole_groups_left(Mask devices, int level) const {
  const Mask left = free_ & ~devices;
  const auto& groups = graph_.groups(level);
  return static_cast<int>(std::count_if(groups.begin(), groups.end(), [&](Mask g) { return (g & ~left) == 0; }));
}

// Chains and rings: minus the sum of the squares of the free runs that stay, so that long runs stay long.
int Rater::chain_fragments(Mask devices) const {
  const Mask left = free_ & ~devices;
  int squares = 0;
  int run = 0;
  int first_run = -1;  // length of the run at position 0, which a ring joins to the last one
  for (int i = 0; i <= graph_.size(); ++i) {
    const bool free = i < graph_.size() && (left & bit(i)) != 0;
    const bool linked = i > 0 && i < graph_.size() && (graph_.neighbours(i) & bit(i - 1)) != 0;
    if (run > 0 && !(free && linked)) {
      squares += run * run;
      if (first_run < 0 && run == i) first_run = run;
      if (i == graph_.size() && first_run > 0 && run < i && (graph_.neighbours(0) & bit(i - 1)) != 0) {
        squares += 2 * run * first_run;
      }
      run = 0;
    }
    if (free) ++run;
  }
  return -squares;
}

Score Rater::rate(Mask devices, int hop_sum) const {
  Score score{};
  score[0] = hop_sum;
  score[1] = distance_to_efas(devices);
  if (graph_.is_chain()) {
    score[2] = graph_.index_runs(devices);
    score[3] = chain_fragments(devices);
  } else {
    for (int level = DeviceGraph::kLevels - 1; level > 0; --level) {
      score[static_cast<std::size_t>(2 + DeviceGraph::kLevels - 1 - level)] = -whole_groups_left(devices, level);
    }
  }
  score[7] = graph_.numa_nodes(devices);
  score[8] = graph_.switches(devices);
  score[9] = graph_.index_runs(devices);
  return score;
}

bool better(const Score& sa, Mask a, const Score& sb, Mask b) {
  if (sa != sb) return sa < sb;
  const Mask differ = a ^ b;
  return (a & differ & (~differ + 1)) != 0;
}

}  // namespace neuron::core::allocation
