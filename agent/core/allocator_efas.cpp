#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "agent/core/allocator_graph.h"

namespace neuron::core {
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
  NearestFirst(const NodeTopology& topology, const Ids& device_indices) : topology_(topology) {
    for (const auto& device : topology.devices) {
      if (contains(device_indices, device.index)) devices_.push_back({&device, 0});
    }
  }

  [[nodiscard]] bool has_devices() const { return !devices_.empty(); }

  // Of the EFAs, those that are the nearest of one of the devices.
  [[nodiscard]] int nearest_among(const Ids& efas) const {
    return static_cast<int>(
        std::count_if(efas.begin(), efas.end(), [&](int efa) { return locality(closest_to(efa), efa) == 0; }));
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
    return allocation::locality_class(topology_, *devices_[i].device, efa);
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

  const NodeTopology& topology_;
  std::vector<Served> devices_;
};

// The devices that a container with `size` EFAs would most likely get: free ones whose nearest EFA is available, as
// many as share that number of EFAs.
Ids likely_devices(const NodeTopology& topology, const Ids& free_devices, const Ids& available, const Ids& must,
                   int size) {
  ChooseRequest request;
  for (const auto& device : topology.devices) {
    const bool reachable = std::any_of(device.near_efas.begin(), device.near_efas.end(),
                                       [&](int efa) { return contains(available, efa); });
    if (reachable && contains(free_devices, device.index)) request.available.push_back(device.index);
  }
  std::size_t with_devices = 0;
  std::size_t links = 0;
  for (const auto& efa : topology.efas) {
    if (!efa.near_devices.empty()) ++with_devices;
    links += efa.near_devices.size();
  }
  if (with_devices == 0 || request.available.empty()) return {};
  for (const int efa : must) {
    for (const int device : efa_at(topology, efa).near_devices) {
      if (contains(request.available, device) && static_cast<int>(request.must_include.size()) < size) {
        request.must_include.push_back(device);
      }
    }
  }
  const auto per_efa = static_cast<int>(std::max<std::size_t>(1, links / with_devices));
  request.size = std::min(size * per_efa, static_cast<int>(request.available.size()));
  return choose_devices(topology, request).ids;
}

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

Reason describe(const NodeTopology& topology, const Ids& chosen, Reason::Kind kind) {
  Ids nodes;
  Ids groups;
  for (const int efa : chosen) {
    const auto& entry = efa_at(topology, efa);
    if (entry.numa_node >= 0 && !contains(nodes, entry.numa_node)) nodes.push_back(entry.numa_node);
    if (entry.pci_group >= 0 && !contains(groups, entry.pci_group)) groups.push_back(entry.pci_group);
  }
  Reason reason;
  reason.kind = kind;
  reason.numa_nodes = static_cast<int>(nodes.size());
  reason.switches = static_cast<int>(groups.size());
  return reason;
}

}  // namespace

Choice choose_efas(const NodeTopology& topology, const ChooseRequest& request) {
  const allocation::Question question = allocation::normalise(request);
  if (auto choice = allocation::obvious(question)) return *std::move(choice);
  const auto unknown = [&](int efa) { return efa < 0 || efa >= static_cast<int>(topology.efas.size()); };
  Ids available = question.available;
  Ids chosen = question.must;
  std::erase_if(available, unknown);
  std::erase_if(chosen, unknown);
  const auto unknown_must = question.must.size() - chosen.size();
  const int wanted = question.size - static_cast<int>(unknown_must);
  Reason::Kind kind = Reason::Kind::packed;
  std::optional<int> nearest;
  NearestFirst given(topology, request.prefer_devices);
  if (given.has_devices()) {
    kind = Reason::Kind::near_devices;
    given.take(chosen, available, wanted);
    nearest = given.nearest_among(chosen);
  } else if (NearestFirst likely(topology, likely_devices(topology, request.free_devices, available, chosen, wanted));
             likely.has_devices()) {
    kind = Reason::Kind::near_free_devices;
    likely.take(chosen, available, wanted);
    nearest = likely.nearest_among(chosen);
  } else {
    take_packed(topology, chosen, available, wanted);
  }
  Reason reason = describe(topology, chosen, kind);
  reason.units = question.size;
  reason.nearest = nearest;
  for (const int id : question.must) {
    if (unknown(id)) chosen.push_back(id);
  }
  return allocation::explained(allocation::fill_up(std::move(chosen), question.available, question.size), reason);
}

}  // namespace neuron::core
