// The EFA rules of reference.h.
#include <algorithm>
#include <map>
#include <set>
#include "test/unit/allocator/reference.h"

namespace neuron::test {

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

std::vector<int> Reference::likely(const allocator::ChooseRequest& request) const {
  const auto [near_devices, near_efas] = near_each_other();
  const Set free = set_of(request.free_devices);
  const int most = __builtin_popcount(free);
  if (near_efas == 0 || most == 0) return {};
  std::vector<int> sizes;
  for (std::size_t i = 0; i < request.likely_sizes.size() && i < 4; ++i) {
    const int size = request.likely_sizes[i];
    if (size > 0 && size <= most) sizes.push_back(size);
  }
  if (sizes.empty()) sizes.push_back(std::min(most, std::max(1, request.size * near_devices / near_efas)));
  Set near_must = 0;
  for (const Set near : served_by(request.must_include, free)) near_must |= near;
  const Wanted wanted{{}, request.available, request.size, 0};
  const auto best_in = [&](Set pool, int size) {
    Set must = near_must & pool;
    for (int i = count_ - 1; __builtin_popcount(must) > size; --i) must &= ~(Set{1} << static_cast<unsigned>(i));
    return best_devices(pool, free, must, size, wanted);
  };
  Set within = 0;
  std::set<int, std::greater<>> kept;
  for (const int size : sizes) {
    auto all = kept;
    all.insert(size);
    Set innermost = free;
    bool good = true;
    for (const int one : all) {
      const Set inside = best_in(innermost, one);
      const Set outside = best_in(free, one);
      good = good && fit(inside) == fit(outside) && missed(inside, wanted) == missed(outside, wanted);
      innermost = inside;
    }
    if (!good) continue;
    kept = all;
    within = innermost;
  }
  std::vector<int> indices;
  for (int i = 0; i < count_; ++i)
    if ((within >> static_cast<unsigned>(i) & 1U) != 0)
      indices.push_back(topology_.devices[static_cast<std::size_t>(i)].index);
  const auto near = served_by(request.available, within);
  return near == std::vector<Set>(near.size(), 0) ? std::vector<int>{} : indices;
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

std::vector<int> Reference::efas(const allocator::ChooseRequest& request) const {
  if (!request.prefer_devices.empty()) {
    return beside(request.prefer_devices, request.must_include, request.available, request.size);
  }
  const std::vector<int> devices = likely(request);
  if (!devices.empty()) return beside(devices, request.must_include, request.available, request.size);
  return packed(request.must_include, request.available, request.size);
}

}  // namespace neuron::test
