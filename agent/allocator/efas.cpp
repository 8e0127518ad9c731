#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "agent/allocator/graph.h"

namespace neuron::allocator {
namespace {

using Ids = std::vector<int>;

bool contains(const Ids& ids, int id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

const NodeTopology::Efa& efa_at(const NodeTopology& topology, int position) {
  return topology.efas[static_cast<std::size_t>(position)];
}

// Serves devices in rounds: none gets a second EFA before each has one. An EFA that is the nearest of several devices
// serves all of them at once.
class NearestFirst {
 public:
  NearestFirst(const NodeTopology& topology, const Ids& device_indices) : topology_(&topology) {
    for (const auto& device : topology.devices) {
      if (contains(device_indices, device.index)) devices_.push_back({&device, 0});
    }
  }

  [[nodiscard]] bool has_devices() const { return !devices_.empty(); }

  // Fills in which of the EFAs are the nearest of one of the devices, and of which.
  void describe(Reason& reason, const Ids& efas) const {
    reason.nearest = 0;
    for (const int efa : efas) {
      if (locality(closest_to(efa), efa) == 0) ++*reason.nearest;
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (std::any_of(efas.begin(), efas.end(), [&](int efa) { return locality(i, efa) == 0; })) {
        reason.beside.push_back(devices_[i].device->index);
      }
    }
    std::sort(reason.beside.begin(), reason.beside.end());
  }

  void take(Ids& chosen, const Ids& available, int size) {
    for (const int efa : chosen) serve(efa, closest_to(efa));
    while (static_cast<int>(chosen.size()) < size) {
      std::optional<std::tuple<int, int, std::size_t, int>> best;  // rounds, distance, device, EFA
      for (const int efa : available) {
        if (contains(chosen, efa)) continue;
        for (std::size_t i = 0; i < devices_.size(); ++i) {
          const std::tuple offer(devices_[i].served, locality(i, efa), i, efa);
          if (!best || offer < *best) best = offer;
        }
      }
      if (!best) return;
      chosen.push_back(std::get<3>(*best));
      serve(std::get<3>(*best), std::get<2>(*best));
    }
  }

 private:
  struct Served {
    const NodeTopology::Device* device = nullptr;
    int served = 0;
  };

  [[nodiscard]] int locality(std::size_t i, int efa) const {
    return locality_class(*topology_, *devices_[i].device, efa);
  }

  [[nodiscard]] std::size_t closest_to(int efa) const {
    std::size_t closest = 0;
    for (std::size_t i = 1; i < devices_.size(); ++i) {
      if (locality(i, efa) < locality(closest, efa)) closest = i;
    }
    return closest;
  }

  void serve(int efa, std::size_t taker) {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (i == taker || locality(i, efa) == 0) ++devices_[i].served;
    }
  }

  const NodeTopology* topology_;
  std::vector<Served> devices_;
};

// The free devices that a container with so many EFAs would most likely get. It asks for its devices later, in unknown
// number; the sets for several likely sizes lie inside each other, so that the same EFAs are right for all of them.
class LikelyDevices {
 public:
  LikelyDevices(const NodeTopology& topology, const ChooseRequest& request, const Ids& available, const Ids& must,
                int efas)
      : topology_(topology), graph_(topology), free_(graph_.mask_of(request.free_devices)) {
    preferences_.free_efas = available;
    preferences_.efas = efas;
    for (const int efa : must) must_ |= graph_.mask_of(efa_at(topology, efa).near_devices) & free_;
    rater_.emplace(graph_, free_, preferences_);
  }

  // Ascending; empty when there are none, or none with an available EFA nearby.
  [[nodiscard]] Ids find(const Ids& likely_sizes) const {
    Mask found = 0;
    Ids kept;
    for (const int size : sizes_of(likely_sizes)) {
      kept.push_back(size);
      if (const Mask devices = nested(kept); devices != 0) {
        found = devices;
      } else {
        kept.pop_back();
      }
    }
    for (const int at : positions(found)) {
      if (rater_->wanted_near(at) != 0) return graph_.indices_of(found);
    }
    return {};
  }

 private:
  static constexpr std::size_t kMostSizes = 4;

  struct Found {
    Mask devices = 0;
    Fit fit = Fit::scattered;
    int misses = 0;
  };

  // Without repetitions, most likely first; those that are there no more are left out. Not empty if any device is free.
  [[nodiscard]] Ids sizes_of(Ids likely) const {
    const int usual = devices_for(topology_, preferences_.efas);
    const int count = std::popcount(free_);
    if (usual == 0 || count == 0) return {};
    if (likely.size() > kMostSizes) likely.resize(kMostSizes);
    Ids sizes;
    for (const int size : likely) {
      if (size >= 1 && size <= count && !contains(sizes, size)) sizes.push_back(size);
    }
    if (sizes.empty()) sizes.push_back(std::min(usual, count));
    return sizes;
  }

  // From the largest to the smallest, each inside the one before; 0 when one would have been better elsewhere.
  [[nodiscard]] Mask nested(Ids sizes) const {
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    Mask within = free_;
    for (const int size : sizes) {
      const Found inside = best_of(within, size);
      if (within != free_) {
        const Found outside = best_of(free_, size);
        if (inside.fit != outside.fit || inside.misses != outside.misses) return 0;
      }
      within = inside.devices;
    }
    return within;
  }

  [[nodiscard]] Found best_of(Mask pool, int size) const {
    Mask must = must_ & pool;
    while (std::popcount(must) > size) must &= ~bit(static_cast<int>(std::bit_width(must)) - 1);
    const Mask devices = pick(graph_, *rater_, pool, must, size);
    return {devices, fit_of(graph_, devices), rater_->rate(devices, 0)[kMisses]};
  }

  const NodeTopology& topology_;
  const DeviceGraph graph_;
  Mask free_ = 0;
  Mask must_ = 0;
  Preferences preferences_;
  std::optional<Rater> rater_;
};

// Fewest NUMA nodes, then fewest switches, breaking into as few whole ones as possible: in each step the place with the
// fewest free EFAs that still has enough, else the one with the most.
int best_place(const Ids& candidates, const Ids& chosen, int needed, const auto& place_of) {
  std::optional<std::tuple<bool, bool, int, int>> best;
  int best_where = -1;
  for (const int efa : candidates) {
    const int where = place_of(efa);
    const auto same = [&](int other) { return place_of(other) == where; };
    const auto count = static_cast<int>(std::count_if(candidates.begin(), candidates.end(), same));
    const bool begun = std::any_of(chosen.begin(), chosen.end(), same);
    const std::tuple offer(!begun, count < needed, count < needed ? -count : count, where);
    if (best && !(offer < *best)) continue;
    best = offer;
    best_where = where;
  }
  return best_where;
}

void take_packed(const NodeTopology& topology, Ids& chosen, const Ids& available, int size) {
  const auto numa_of = [&](int efa) { return efa_at(topology, efa).numa_node; };
  const auto group_of = [&](int efa) { return efa_at(topology, efa).pci_group; };
  while (static_cast<int>(chosen.size()) < size) {
    const int needed = size - static_cast<int>(chosen.size());
    Ids left;
    std::copy_if(available.begin(), available.end(), std::back_inserter(left),
                 [&](int efa) { return !contains(chosen, efa); });
    if (left.empty()) return;
    const int node = best_place(left, chosen, needed, numa_of);
    std::erase_if(left, [&](int efa) { return numa_of(efa) != node; });
    const int group = best_place(left, chosen, needed, group_of);
    std::erase_if(left, [&](int efa) { return group_of(efa) != group; });
    chosen.push_back(left.front());
  }
}

Reason places_of(const NodeTopology& topology, const Ids& efas) {
  Ids nodes;
  Ids groups;
  for (const int efa : efas) {
    const auto& entry = efa_at(topology, efa);
    if (entry.numa_node >= 0 && !contains(nodes, entry.numa_node)) nodes.push_back(entry.numa_node);
    if (entry.pci_group >= 0 && !contains(groups, entry.pci_group)) groups.push_back(entry.pci_group);
  }
  Reason reason;
  reason.kind = Reason::Kind::packed;
  reason.numa_nodes = static_cast<int>(nodes.size());
  reason.switches = static_cast<int>(groups.size());
  return reason;
}

bool unknown(const NodeTopology& topology, int efa) {
  return efa < 0 || efa >= static_cast<int>(topology.efas.size());
}

}  // namespace

Choice choose_efas(const NodeTopology& topology, const ChooseRequest& request) {
  const Question question = normalise(request);
  if (auto choice = obvious(question)) return *std::move(choice);
  Ids available = question.available;
  Ids chosen = question.must;
  std::erase_if(available, [&](int efa) { return unknown(topology, efa); });
  std::erase_if(chosen, [&](int efa) { return unknown(topology, efa); });
  const int wanted = question.size - static_cast<int>(question.must.size() - chosen.size());
  NearestFirst beside(topology, request.prefer_devices);
  const bool given = beside.has_devices();
  if (!given) {
    const LikelyDevices likely(topology, request, available, chosen, wanted);
    beside = NearestFirst(topology, likely.find(request.likely_sizes));
  }
  if (beside.has_devices()) {
    beside.take(chosen, available, wanted);
  } else {
    take_packed(topology, chosen, available, wanted);
  }
  Reason reason = places_of(topology, chosen);
  reason.units = question.size;
  if (beside.has_devices()) {
    reason.kind = given ? Reason::Kind::near_devices : Reason::Kind::near_free_devices;
    beside.describe(reason, chosen);
  }
  for (const int id : question.must) {
    if (unknown(topology, id)) chosen.push_back(id);
  }
  return explained(fill_up(std::move(chosen), question.available, question.size), reason);
}

Reason explain_efas(const NodeTopology& topology, const ChooseRequest& request, const std::vector<int>& chosen) {
  Reason reason;
  Ids known = chosen;
  std::erase_if(known, [&](int efa) { return unknown(topology, efa); });
  if (!chosen.empty()) reason = places_of(topology, known);
  reason.units = static_cast<int>(chosen.size());
  if (known.size() != chosen.size()) reason.kind = Reason::Kind::unrated;
  if (known.empty() || known.size() != chosen.size()) return reason;
  const bool given = !request.prefer_devices.empty();
  const NearestFirst beside(topology, given ? request.prefer_devices : request.free_devices);
  if (!beside.has_devices()) return reason;
  beside.describe(reason, known);
  if (given || *reason.nearest > 0) {
    reason.kind = given ? Reason::Kind::near_devices : Reason::Kind::near_free_devices;
  } else {
    reason.nearest.reset();
  }
  return reason;
}

}  // namespace neuron::allocator
