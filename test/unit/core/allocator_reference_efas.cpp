// The EFA rules of allocator_reference.h.
#include <algorithm>
#include <map>
#include <set>
#include "test/unit/core/allocator_reference.h"

namespace neuron::core::test {

std::vector<int> Reference::beside(const std::vector<int>& devices, std::vector<int> chosen,
                                   const std::vector<int>& available, int size) const {
  std::map<int, int> served;  // position -> EFAs it has
  for (int i = 0; i < count_; ++i) {
    if (std::count(devices.begin(), devices.end(), topology_.devices[static_cast<std::size_t>(i)].index) > 0)
      served[i] = 0;
  }
  const auto give = [&](int efa, int taker) {
    for (auto& [device, count] : served) count += device == taker || class_of(device, efa) == 0 ? 1 : 0;
  };
  for (const int efa : chosen) {
    std::set<std::pair<int, int>> order;
    for (const auto& [device, count] : served) order.emplace(class_of(device, efa), device);
    give(efa, order.begin()->second);
  }
  while (static_cast<int>(chosen.size()) < size) {
    std::set<std::vector<int>> offers;
    for (const int efa : available) {
      if (std::count(chosen.begin(), chosen.end(), efa) > 0) continue;
      for (const auto& [device, count] : served) offers.insert({count, class_of(device, efa), device, efa});
    }
    chosen.push_back((*offers.begin())[3]);
    give((*offers.begin())[3], (*offers.begin())[2]);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<int> Reference::likely(const ChooseRequest& request) const {
  ChooseRequest inner;
  int links = 0, linked = 0;
  for (const auto& efa : topology_.efas) {
    links += static_cast<int>(efa.near_devices.size());
    linked += efa.near_devices.empty() ? 0 : 1;
  }
  std::set<int> must;
  for (const auto& device : topology_.devices) {
    bool reachable = false;
    for (const int efa : device.near_efas)
      reachable |= std::count(request.available.begin(), request.available.end(), efa) > 0;
    if (reachable && std::count(request.free_devices.begin(), request.free_devices.end(), device.index) > 0) {
      inner.available.push_back(device.index);
    }
  }
  if (linked == 0 || inner.available.empty()) return {};
  for (const int efa : request.must_include) {
    for (const int device : topology_.efas[static_cast<std::size_t>(efa)].near_devices) {
      const bool there = std::count(inner.available.begin(), inner.available.end(), device) > 0;
      if (there && static_cast<int>(must.size()) < request.size) must.insert(device);
    }
  }
  inner.must_include.assign(must.begin(), must.end());
  inner.size = std::min(request.size * std::max(1, links / linked), static_cast<int>(inner.available.size()));
  return devices(inner);
}

std::vector<int> Reference::packed(std::vector<int> chosen, const std::vector<int>& available, int size) const {
  while (static_cast<int>(chosen.size()) < size) {
    const int needed = size - static_cast<int>(chosen.size());
    std::vector<int> left;
    for (const int efa : available)
      if (std::count(chosen.begin(), chosen.end(), efa) == 0) left.push_back(efa);
    for (const bool numa : {true, false}) {
      const auto where = [&](int efa) {
        const auto& nic = topology_.efas[static_cast<std::size_t>(efa)];
        return numa ? nic.numa_node : nic.pci_group;
      };
      std::map<int, int> room;
      std::set<int> begun;
      for (const int efa : left) ++room[where(efa)];
      for (const int efa : chosen) begun.insert(where(efa));
      std::set<std::vector<int>> order;
      for (const auto& [place, free] : room) {
        order.insert({begun.contains(place) ? 0 : 1, free >= needed ? 0 : 1, free >= needed ? free : -free, place});
      }
      std::erase_if(left, [&](int efa) { return where(efa) != (*order.begin())[3]; });
    }
    chosen.push_back(left.front());
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<int> Reference::efas(const ChooseRequest& request) const {
  if (!request.prefer_devices.empty()) {
    return beside(request.prefer_devices, request.must_include, request.available, request.size);
  }
  const std::vector<int> devices = likely(request);
  if (!devices.empty()) return beside(devices, request.must_include, request.available, request.size);
  return packed(request.must_include, request.available, request.size);
}

}  // namespace neuron::core::test
