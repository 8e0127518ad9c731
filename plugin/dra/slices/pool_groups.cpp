#include "plugin/dra/slices/pool_groups.h"

#include <algorithm>

#include "plugin/dra/slices/pool.h"

namespace neuron::plugin::dra {
namespace {

using Devices = std::vector<allocator::NodeTopology::Device>;

const allocator::NodeTopology::Device* find(const Devices& devices, int index) {
  const auto at =
      std::find_if(devices.begin(), devices.end(), [&](const auto& device) { return device.index == index; });
  return at == devices.end() ? nullptr : &*at;
}

// Whether a run may go from `a` to `b`. Where the lists are not public, as of inf1.24xlarge, consecutive is linked.
bool linked(const Devices& devices, int a, int b) {
  const auto* from = find(devices, a);
  if (from == nullptr || find(devices, b) == nullptr) return false;
  return from->neighbours.empty() ||
         std::find(from->neighbours.begin(), from->neighbours.end(), b) != from->neighbours.end();
}

std::vector<Group> aligned_groups(const Devices& devices, int indices) {
  std::vector<Group> groups;
  for (const int size : {4, 8, 16}) {
    for (int first = (indices - 1) / size * size; first >= 0; first -= size) {
      Group group{{first, first + size - 1}, {}};
      for (int member = first; member < first + size; ++member) {
        if (find(devices, member) != nullptr) group.members.push_back(member);
      }
      if (static_cast<int>(group.members.size()) == size) groups.push_back(std::move(group));
    }
  }
  return groups;
}

// The run of `size` from `first` on; without members when a link of it is missing.
Group run_of(const Devices& devices, int first, int size, int ring) {
  Group group{{first, (first + size - 1) % ring}, {first}};
  for (int i = 1; i < size; ++i) {
    const int next = (first + i) % ring;
    if (!linked(devices, group.members.back(), next)) return {};
    group.members.push_back(next);
  }
  return group;
}

std::vector<Group> runs(const Devices& devices, int ring, bool wraps) {
  std::vector<Group> groups;
  const auto add = [&](int first, int size) {
    Group run = run_of(devices, first, size, ring);
    if (!run.members.empty()) groups.push_back(std::move(run));
  };
  for (int size = 2; size <= ring; ++size) {
    for (int first = ring - size; first >= 0; --first) add(first, size);
    // All of a ring is one group, wherever it begins.
    for (int first = ring - 1; wraps && size < ring && first > ring - size; --first) add(first, size);
  }
  return groups;
}

}  // namespace

std::vector<Group> groups_of(const grant::NodeUnits& node) {
  const allocator::NodeTopology& topology = node.topology();
  const int indices = ring_size(node);
  if (indices < 2) return {};
  if (topology.groups_of_torus) return aligned_groups(topology.devices, indices);
  if (topology.ring || topology.line) return runs(topology.devices, indices, topology.ring);
  return {};
}

}  // namespace neuron::plugin::dra
