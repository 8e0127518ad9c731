#include <algorithm>
#include <bit>
#include <utility>

#include "agent/allocator/graph.h"

namespace neuron::allocator {
namespace {

constexpr int kMaxEfas = 64;  // more than any node has; those beyond are not weighed

// Devices that have a nearest EFA, EFAs that are the nearest of a device.
std::pair<int, int> near_each_other(const NodeTopology& topology) {
  const auto devices = std::count_if(topology.devices.begin(), topology.devices.end(),
                                     [](const auto& device) { return !device.near_efas.empty(); });
  const auto efas = std::count_if(topology.efas.begin(), topology.efas.end(),
                                  [](const auto& efa) { return !efa.near_devices.empty(); });
  return {static_cast<int>(devices), static_cast<int>(efas)};
}

}  // namespace

int locality_class(const NodeTopology& topology, const NodeTopology::Device& device, int efa) {
  if (std::find(device.near_efas.begin(), device.near_efas.end(), efa) != device.near_efas.end()) return 0;
  const auto& nic = topology.efas[static_cast<std::size_t>(efa)];
  if (nic.pci_group >= 0 && nic.pci_group == device.pci_group) return 1;
  return nic.numa_node >= 0 && nic.numa_node == device.numa_node ? 2 : 3;
}

int efas_for(const NodeTopology& topology, int devices) {
  const auto [near_devices, near_efas] = near_each_other(topology);
  return near_devices == 0 ? 0 : (devices * near_efas + near_devices - 1) / near_devices;
}

int devices_for(const NodeTopology& topology, int efas) {
  const auto [near_devices, near_efas] = near_each_other(topology);
  return near_efas == 0 ? 0 : std::max(1, efas * near_devices / near_efas);
}

Rater::Rater(const DeviceGraph& graph, Mask free, const Preferences& preferences)
    : graph_(graph), free_(free), reluctant_(preferences.reluctant) {
  const auto count = static_cast<int>(graph.topology().efas.size());
  for (const int efa : preferences.prefer_efas) {
    if (efa < 0 || efa >= count) continue;
    Rings rings{};
    for (int i = 0; i < graph.size(); ++i) {
      const int distance = locality_class(graph.topology(), graph.device(i), efa);
      for (int ring = distance; ring < 3; ++ring) rings[static_cast<std::size_t>(ring)] |= bit(i);
    }
    efas_.push_back(rings);
  }
  const bool given = !efas_.empty();
  Mask counted = 0;
  for (const int efa : given ? preferences.prefer_efas : preferences.free_efas) {
    if (efa >= 0 && efa < std::min(count, kMaxEfas)) counted |= bit(efa);
  }
  if (counted != 0) wanted_ = given ? std::popcount(counted) : std::max(0, preferences.efas);
  for (int i = 0; i < graph.size() && wanted_ > 0; ++i) {
    for (const int efa : graph.device(i).near_efas) {
      if (efa < 0 || efa >= kMaxEfas || (counted & bit(efa)) == 0) continue;
      near_[static_cast<std::size_t>(i)] |= bit(efa);
      nearest_of_[static_cast<std::size_t>(efa)] |= bit(i);
      served_ |= bit(i);
    }
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
  for (const Mask ring : reached) distance += count_of(devices & ~ring);
  return distance;
}

// Devices that would not get their nearest if the container asks for as many EFAs as it may: those of the EFA that is
// the nearest of most devices are served first, then those of the next.
int Rater::without_nearest(Mask devices, Mask near) const {
  Mask left = devices & served_;
  const int never = count_of(devices & ~served_);
  if (count_of(near) <= wanted_) return never;
  for (int efas = 0; efas < wanted_ && left != 0; ++efas) {
    Mask most = 0;
    for (Mask rest = near; rest != 0; rest &= rest - 1) {
      const Mask some = nearest_of_[static_cast<std::size_t>(std::countr_zero(rest))] & left;
      if (count_of(some) > count_of(most)) most = some;
    }
    left &= ~most;
  }
  return never + count_of(left);
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
  score[kReluctant] = count_of(devices & reluctant_);
  score[kHops] = hop_sum;
  if (wanted_ > 0) {
    Mask near = 0;
    for (Mask rest = devices; rest != 0; rest &= rest - 1) near |= wanted_near(std::countr_zero(rest));
    score[kMisses] = misses(count_of(near));
    score[kNear] = efas_.empty() ? without_nearest(devices, near) : distance_to_efas(devices);
  }
  if (graph_.is_chain()) {
    score[4] = graph_.index_runs(devices);
    score[5] = chain_fragments(devices);
  } else {
    for (int level = DeviceGraph::kLevels - 1; level > 0; --level) {
      score[static_cast<std::size_t>(4 + DeviceGraph::kLevels - 1 - level)] = -whole_groups_left(devices, level);
    }
  }
  score[8] = graph_.numa_nodes(devices);
  score[9] = graph_.switches(devices);
  score[10] = graph_.index_runs(devices);
  return score;
}

bool better(const Score& sa, Mask a, const Score& sb, Mask b) {
  if (sa != sb) return sa < sb;
  const Mask differ = a ^ b;
  return (a & differ & (~differ + 1)) != 0;
}

}  // namespace neuron::allocator
