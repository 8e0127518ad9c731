#include "agent/allocator/graph.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

namespace neuron::allocator {
namespace {

constexpr int kGroupOf[] = {1, 2, 4, 8, 16};

int touched(const std::vector<Mask>& places, Mask devices) {
  int count = 0;
  for (const Mask place : places) count += (place & devices) != 0 ? 1 : 0;
  return count;
}

// Hops of a switched fabric: all alike, but devices of one aligned group count as closer, so that groups stay together.
std::uint8_t switched_hops(int a, int b) {
  return a / 4 == b / 4 ? 1 : a / 8 == b / 8 ? 2 : 3;
}

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

DeviceGraph::DeviceGraph(const NodeTopology& topology)
    : topology_(topology), size_(static_cast<int>(std::min<std::size_t>(topology.devices.size(), kMaxDevices))) {
  link_devices();
  measure_hops();
  find_groups();
  find_places();
}

int DeviceGraph::position_of(int index) const {
  if (index >= 0 && index < size_ && device(index).index == index) return index;  // as on every complete node
  for (int i = 0; i < size_; ++i) {
    if (device(i).index == index) return i;
  }
  return -1;
}

Mask DeviceGraph::mask_of(const std::vector<int>& indices) const {
  Mask mask = 0;
  for (const int index : indices) {
    if (const int position = position_of(index); position >= 0) mask |= bit(position);
  }
  return mask;
}

std::vector<int> DeviceGraph::indices_of(Mask devices) const {
  std::vector<int> indices;
  for (const int at : positions(devices)) indices.push_back(device(at).index);
  return indices;
}

// Links are made symmetric; without any list at all, devices with consecutive indices count as linked.
void DeviceGraph::link_devices() {
  bool any = false;
  for (int i = 0; i < size_ && !topology_.switched; ++i) {
    for (const int index : device(i).neighbours) {
      const int other = position_of(index);
      if (other < 0 || other == i) continue;
      adjacent_[static_cast<std::size_t>(i)] |= bit(other);
      adjacent_[static_cast<std::size_t>(other)] |= bit(i);
      any = true;
    }
  }
  if (any) return;
  for (int i = 0; i < size_; ++i) {
    for (int k = 0; k < size_; ++k) {
      const bool linked = topology_.switched ? i != k : std::abs(device(i).index - device(k).index) == 1;
      if (linked) adjacent_[static_cast<std::size_t>(i)] |= bit(k);
    }
  }
}

void DeviceGraph::measure_hops() {
  for (int from = 0; from < size_; ++from) {
    auto& row = hops_[static_cast<std::size_t>(from)];
    if (topology_.switched) {
      for (int to = 0; to < size_; ++to) {
        row[static_cast<std::size_t>(to)] =
            to == from ? std::uint8_t{0} : switched_hops(device(from).index, device(to).index);
      }
      continue;
    }
    std::fill_n(row.begin(), size_, static_cast<std::uint8_t>(kUnreachable));
    Mask seen = bit(from);
    Mask front = seen;
    for (std::uint8_t distance = 0; front != 0; ++distance) {
      Mask next = 0;
      for (const int at : positions(front)) {
        row[static_cast<std::size_t>(at)] = distance;
        next |= neighbours(at);
      }
      front = next & ~seen;
      seen |= next;
    }
  }
}

// Devices that share their only nearest EFA (Trn1), else the two devices of a switch (Trn2).
std::vector<Mask> DeviceGraph::close_pairs() const {
  std::vector<Mask> pairs;
  const auto add_pair = [&](auto same) {
    Mask seen = 0;
    for (int i = 0; i < size_; ++i) {
      if ((seen & bit(i)) != 0) continue;
      Mask members = 0;
      for (int k = i; k < size_; ++k) {
        if (same(device(i), device(k))) members |= bit(k);
      }
      if (std::popcount(members) == 2) pairs.push_back(members);
      seen |= members;
    }
  };
  using Device = NodeTopology::Device;
  add_pair([](const Device& a, const Device& b) { return a.near_efas.size() == 1 && a.near_efas == b.near_efas; });
  if (pairs.empty()) {
    add_pair([](const Device& a, const Device& b) { return a.pci_group >= 0 && a.pci_group == b.pci_group; });
  }
  return pairs;
}

void DeviceGraph::find_groups() {
  for (int level = 0; level < kLevels; ++level) {
    if (level == 1) continue;
    const int width = kGroupOf[level];
    std::array<Mask, kMaxDevices> members{};
    for (int i = 0; i < size_; ++i) {
      const int index = device(i).index;
      if (index >= 0 && index < kMaxDevices) members[static_cast<std::size_t>(index / width)] |= bit(i);
    }
    for (const Mask group : members) {
      if (group != 0 && std::popcount(group) == width) groups_[static_cast<std::size_t>(level)].push_back(group);
    }
  }
  groups_[1] = close_pairs();
}

void DeviceGraph::find_places() {
  const auto find = [this](int NodeTopology::Device::*place, std::vector<Mask>& found) {
    for (int i = 0; i < size_; ++i) {
      const int where = device(i).*place;
      if (where < 0) continue;
      const auto same = std::find_if(found.begin(), found.end(),
                                     [&](Mask devices) { return device(std::countr_zero(devices)).*place == where; });
      if (same == found.end()) {
        found.push_back(bit(i));
      } else {
        *same |= bit(i);
      }
    }
  };
  find(&NodeTopology::Device::numa_node, numa_nodes_);
  find(&NodeTopology::Device::pci_group, switches_);
}

int DeviceGraph::hop_sum(Mask devices) const {
  int sum = 0;
  for (const int a : positions(devices)) {
    for (const int b : positions(devices & above(a))) sum += hops(a, b);
  }
  return sum;
}

Mask DeviceGraph::neighbours_of(Mask devices) const {
  Mask all = 0;
  for (const int at : positions(devices)) all |= neighbours(at);
  return all;
}

Mask DeviceGraph::piece(Mask from, Mask devices) const {
  Mask seen = from;
  for (Mask front = seen; front != 0;) {
    front = neighbours_of(front) & devices & ~seen;
    seen |= front;
  }
  return seen;
}

int DeviceGraph::numa_nodes(Mask devices) const {
  return touched(numa_nodes_, devices);
}

int DeviceGraph::switches(Mask devices) const {
  return touched(switches_, devices);
}

int DeviceGraph::index_runs(Mask devices) const {
  int runs = 0;
  int previous = -2;
  for (const int at : positions(devices)) {
    const int index = device(at).index;
    if (index != previous + 1) ++runs;
    previous = index;
  }
  return runs;
}

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
    for (const int efa : positions(near)) {
      const Mask some = nearest_of_[static_cast<std::size_t>(efa)] & left;
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
    for (const int at : positions(devices)) near |= wanted_near(at);
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
  return (a & lowest(differ)) != 0;
}

}  // namespace neuron::allocator
