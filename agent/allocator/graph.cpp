#include "agent/allocator/graph.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

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
  for (Mask rest = devices; rest != 0; rest &= rest - 1) indices.push_back(device(std::countr_zero(rest)).index);
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
      for (Mask rest = front; rest != 0; rest &= rest - 1) {
        const int at = std::countr_zero(rest);
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
  for (Mask rest = devices; rest != 0; rest &= rest - 1) {
    const int a = std::countr_zero(rest);
    for (Mask others = rest & (rest - 1); others != 0; others &= others - 1) sum += hops(a, std::countr_zero(others));
  }
  return sum;
}

bool DeviceGraph::connected(Mask devices) const {
  Mask seen = devices & (~devices + 1);
  for (Mask front = seen; front != 0;) {
    Mask next = 0;
    for (; front != 0; front &= front - 1) next |= neighbours(std::countr_zero(front));
    front = next & devices & ~seen;
    seen |= front;
  }
  return seen == devices;
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
  for (Mask rest = devices; rest != 0; rest &= rest - 1) {
    const int index = device(std::countr_zero(rest)).index;
    if (index != previous + 1) ++runs;
    previous = index;
  }
  return runs;
}

}  // namespace neuron::allocator
