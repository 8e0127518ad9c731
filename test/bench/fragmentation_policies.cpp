#include "test/bench/fragmentation_policies.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

namespace neuron::bench {
namespace {

using Ids = std::vector<int>;

std::size_t at(int id) {
  return static_cast<std::size_t>(id);
}

Ids first_of(Ids ids, int count) {
  ids.resize(at(count));
  std::sort(ids.begin(), ids.end());
  return ids;
}

Ids shuffled(Ids ids, std::mt19937_64& random) {
  for (std::size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random() % i]);
  return ids;
}

Ids first_run(const Ids& free, int size) {
  for (std::size_t i = 0; i + at(size) <= free.size(); ++i) {
    if (free[i + at(size) - 1] - free[i] != size - 1) continue;
    return Ids(free.begin() + static_cast<std::ptrdiff_t>(i), free.begin() + static_cast<std::ptrdiff_t>(i) + size);
  }
  return {};
}

Ids first_aligned_group(const Ids& free, int size) {
  if (size != 1 && size != 4 && size != 8 && size != 16) return {};
  for (std::size_t i = 0; i + at(size) <= free.size(); ++i) {
    const auto begin = free.begin() + static_cast<std::ptrdiff_t>(i);
    if (*begin % size == 0 && *(begin + size - 1) - *begin == size - 1) return Ids(begin, begin + size);
  }
  return {};
}

int weight(const Fabric& fabric, Unit unit, int a, int b) {
  constexpr int kSameDevice = 100;
  const int per_unit = unit == Unit::core ? fabric.per_device() : 1;
  const int hops = fabric.hops(a / per_unit, b / per_unit);
  return hops == 0 ? kSameDevice : 60 / hops;
}

// Grows one set from `seed`; returns its total weight.
int grow(const Fabric& fabric, Unit unit, const Ids& free, int size, Ids& set) {
  std::vector<int> gain(free.size(), 0);
  int total = 0;
  while (true) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < free.size(); ++i) {
      if (std::find(set.begin(), set.end(), free[i]) != set.end()) continue;
      gain[i] += weight(fabric, unit, free[i], set.back());
      if (!best || gain[i] > gain[*best]) best = i;
    }
    if (static_cast<int>(set.size()) == size || !best) return total;
    total += gain[*best];
    set.push_back(free[*best]);
  }
}

Ids greedy_units(const Fabric& fabric, Unit unit, const Ids& free, int size) {
  Ids best;
  int best_weight = -1;
  int last_device = -1;
  for (const int seed : free) {
    const int device = unit == Unit::core ? seed / fabric.per_device() : seed;
    if (std::exchange(last_device, device) == device) continue;  // cores of one device are alike
    Ids set{seed};
    const int total = grow(fabric, unit, free, size, set);
    if (total <= best_weight) continue;
    best_weight = total;
    best = std::move(set);
  }
  std::sort(best.begin(), best.end());
  return best;
}

Ids efas_by_numa(const Fabric& fabric, const Ids& devices, Ids free, int count) {
  const auto& topology = fabric.topology();
  std::stable_partition(free.begin(), free.end(), [&](int efa) {
    return std::any_of(devices.begin(), devices.end(), [&](int device) {
      return topology.devices[at(device)].numa_node == topology.efas[at(efa)].numa_node;
    });
  });
  return first_of(std::move(free), count);
}

Placement place_ours(const Fabric& fabric, const Occupancy& node, const Request& request) {
  const allocator::NodeTopology& topology = fabric.topology();
  Placement placement;
  const auto choose_efas = [&] {
    allocator::ChooseRequest question;
    question.available = node.free_efas();
    question.size = request.efas;
    question.free_devices = node.free_devices();
    question.prefer_devices = fabric.devices_of(request.unit, placement.ids);
    placement.efas = allocator::choose_efas(topology, question).ids;
  };
  const auto choose_units = [&] {
    allocator::ChooseRequest question;
    question.available = node.free_units(request.unit);
    question.size = request.size;
    question.prefer_efas = placement.efas;
    question.free_efas = node.free_efas();
    const bool cores = request.unit == Unit::core;
    placement.ids =
        (cores ? allocator::choose_cores(topology, question) : allocator::choose_devices(topology, question)).ids;
  };
  if (request.efas == 0) {
    choose_units();
  } else if (request.efas_first) {
    choose_efas();
    choose_units();
  } else {
    choose_units();
    choose_efas();
  }
  return placement;
}

}  // namespace

Policy ours() {
  return {"ours", place_ours};
}

Policy kubelet_order(std::uint64_t seed) {
  const auto random = std::make_shared<std::mt19937_64>(seed);
  return {"kubelet order", [random](const Fabric&, const Occupancy& node, const Request& request) {
            return Placement{first_of(shuffled(node.free_units(request.unit), *random), request.size),
                             first_of(shuffled(node.free_efas(), *random), request.efas)};
          }};
}

Policy lowest_index() {
  return {"lowest index", [](const Fabric&, const Occupancy& node, const Request& request) {
            return Placement{first_of(node.free_units(request.unit), request.size),
                             first_of(node.free_efas(), request.efas)};
          }};
}

Policy aligned_first_fit() {
  return {"aligned first fit", [](const Fabric& fabric, const Occupancy& node, const Request& request) {
            const Ids free = node.free_units(request.unit);
            const bool groups = request.unit == Unit::device && fabric.topology().groups_of_torus;
            Ids ids = groups ? first_aligned_group(free, request.size) : first_run(free, request.size);
            return Placement{std::move(ids), first_of(node.free_efas(), request.efas)};
          }};
}

Policy pairwise_greedy() {
  return {"pairwise greedy", [](const Fabric& fabric, const Occupancy& node, const Request& request) {
            Placement placement;
            placement.ids = greedy_units(fabric, request.unit, node.free_units(request.unit), request.size);
            placement.efas =
                efas_by_numa(fabric, fabric.devices_of(request.unit, placement.ids), node.free_efas(), request.efas);
            return placement;
          }};
}

}  // namespace neuron::bench
