#include <algorithm>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "agent/allocator/graph.h"
#include "agent/base/parse.h"
#include "agent/base/sorted.h"

namespace neuron::allocator {
namespace {

std::string list_of(const std::vector<int>& devices) {
  return (devices.size() == 1 ? "device " : "devices ") + format_int_list(devices);
}

std::string efa_head(const Reason& reason, const std::string& whose) {
  const int near = reason.nearest.value_or(0);
  if (near == 0) return "none is nearest to " + whose;
  const std::string devices =
      reason.kind == Reason::Kind::near_free_devices ? "free " + list_of(reason.beside) : list_of(reason.beside);
  if (near == reason.units) return "nearest to " + devices;
  return std::to_string(near) + " of " + std::to_string(reason.units) + " nearest to " + devices;
}

std::string head_of(const Reason& reason) {
  const std::string size = std::to_string(reason.units);
  switch (reason.kind) {
    case Reason::Kind::nothing:
      return "nothing to choose";
    case Reason::Kind::everything:
      return "all that is available";
    case Reason::Kind::aligned_group:
      return reason.units == 1 ? "one device" : "aligned group of " + size;
    case Reason::Kind::run:
      return reason.units == 1 ? "one device" : "run of " + size;
    case Reason::Kind::connected:
      return "connected set of " + size;
    case Reason::Kind::scattered:
      return "set of " + size + ", not connected";
    case Reason::Kind::core_range:
      break;
    case Reason::Kind::core_scatter:
      return "no range of cores is left, scattered over " + counted(reason.devices, "device");
    case Reason::Kind::near_devices:
      return efa_head(reason, "the container's devices");
    case Reason::Kind::near_free_devices:
      return efa_head(reason, "free devices");
    case Reason::Kind::packed:
      return "packed";
    case Reason::Kind::unrated:
      return "ids or core numbers that the topology does not know";
  }
  if (reason.devices == 1) return "one range on device " + std::to_string(reason.first_device);
  return "one range over " + counted(reason.devices, "device");
}

std::string groups_phrase(const Reason::GroupsLeft& left) {
  if (left.of4 > 0 || left.of1 == 0) return "leaves " + counted(left.of4, "group") + " of 4 whole";
  if (left.of2 > 0) return "leaves no group of 4, " + counted(left.of2, "pair");
  return "leaves no group of 4, " + counted(left.of1, "device");
}

// Positions of the devices of these cores, ascending, without repetitions; -1 for one that the topology does not know.
std::vector<int> positions_of(const DeviceGraph& graph, const std::vector<int>& cores, int per_device) {
  std::vector<int> positions;
  for (const int core : cores) positions.push_back(core < 0 ? -1 : graph.position_of(core / per_device));
  return sorted_unique(std::move(positions));
}

// Whether the container sees them as one range: each core followed by the next of its device, or from the last core of
// one device to the first of the next that it sees.
bool is_range(const std::vector<int>& cores, int per_device) {
  for (std::size_t i = 1; i < cores.size(); ++i) {
    const bool next = cores[i] == cores[i - 1] + 1;
    const bool onward = cores[i - 1] % per_device == per_device - 1 && cores[i] % per_device == 0;
    if (!next && !onward) return false;
  }
  return true;
}

using Choose = Choice (*)(const NodeTopology&, const ChooseRequest&);
using Explain = Reason (*)(const NodeTopology&, const ChooseRequest&, const std::vector<int>&);

// Whether the choice of so many has one of these shapes. Asked of the ids, as a choice of all there is does not say.
bool fits(const NodeTopology& topology, const std::vector<int>& free, int size, Choose choose, Explain explain,
          std::initializer_list<Reason::Kind> shapes) {
  ChooseRequest request;
  request.available = free;
  request.size = size;
  const Reason reason = explain(topology, request, choose(topology, request).ids);
  return std::find(shapes.begin(), shapes.end(), reason.kind) != shapes.end();
}

// The largest size that fits, where each smaller one fits too; `least` does.
template <typename Fits>
int largest(int least, int most, const Fits& size_fits) {
  while (least < most) {
    const int middle = least + (most - least + 1) / 2;
    if (size_fits(middle)) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return least;
}

}  // namespace

std::string phrase(const Reason& reason) {
  std::string text = head_of(reason);
  if (reason.hops) text += ", " + counted(*reason.hops, "hop");
  if (reason.numa_nodes > 0) text += ", " + counted(reason.numa_nodes - 1, "NUMA crossing");
  if (reason.switches > 0) text += ", " + counted(reason.switches, "switch");
  const bool efas = reason.kind == Reason::Kind::near_devices || reason.kind == Reason::Kind::near_free_devices;
  if (reason.nearest && !efas) text += ", " + counted(*reason.nearest, "EFA") + " nearest";
  if (reason.groups_left) text += ", " + groups_phrase(*reason.groups_left);
  return text;
}

void describe_devices(Reason& reason, const DeviceGraph& graph, const Rater& rater, Mask devices) {
  reason.devices = std::popcount(devices);
  if (devices == 0) return;
  reason.first_device = graph.device(std::countr_zero(devices)).index;
  if (reason.devices > 1 && !graph.topology().switched) reason.hops = graph.hop_sum(devices);
  reason.numa_nodes = graph.numa_nodes(devices);
  if (graph.topology().groups_of_torus) {
    const auto left = [&](int level) { return rater.whole_groups_left(devices, level); };
    reason.groups_left = Reason::GroupsLeft{left(4), left(3), left(2), left(1), left(0)};
  }
}

Choice explained(std::vector<int> ids, const Reason& reason) {
  return {std::move(ids), phrase(reason), reason};
}

std::optional<Choice> obvious(const Question& question) {
  Reason reason;
  reason.units = question.size;
  if (question.size == 0) return explained({}, reason);
  if (question.size < static_cast<int>(question.available.size())) return std::nullopt;
  reason.kind = Reason::Kind::everything;
  return explained(question.available, reason);
}

Reason explain_cores(const NodeTopology& topology, const ChooseRequest& request, const std::vector<int>& chosen) {
  Reason reason;
  const std::vector<int> cores = sorted_unique(chosen);
  reason.units = static_cast<int>(cores.size());
  if (cores.empty()) return reason;
  reason.kind = Reason::Kind::unrated;
  const int per_device = topology.cores_per_device;
  if (per_device < 1) return reason;
  const DeviceGraph graph(topology);
  const std::vector<int> positions = positions_of(graph, cores, per_device);
  if (positions.front() < 0) return reason;
  Mask devices = 0;
  for (const int position : positions) devices |= bit(position);
  const std::vector<int> available = sorted_unique(request.available);
  Mask whole = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const std::int64_t first = std::int64_t{graph.device(i).index} * per_device;
    const auto begin = std::lower_bound(available.begin(), available.end(), first);
    if (std::lower_bound(begin, available.end(), first + per_device) - begin == per_device) whole |= bit(i);
  }
  reason.kind = is_range(cores, per_device) ? Reason::Kind::core_range : Reason::Kind::core_scatter;
  describe_devices(reason, graph, Rater(graph, whole, {}), devices);
  if (!request.prefer_efas.empty()) reason.nearest = nearest_of(graph, request.prefer_efas, devices);
  return reason;
}

int largest_of_devices(const NodeTopology& topology, const std::vector<int>& free) {
  const int count = static_cast<int>(free.size());
  const auto size_fits = [&](int size) {
    return fits(topology, free, size, choose_devices, explain_devices,
                {Reason::Kind::aligned_group, Reason::Kind::run});
  };
  if (count <= 1) return count;
  if (topology.groups_of_torus) {
    for (const int size : {16, 8, 4}) {
      if (size <= count && size_fits(size)) return size;
    }
    return 1;
  }
  if (!topology.ring && !topology.line) return count;
  return largest(1, count, size_fits);
}

int largest_of_cores(const NodeTopology& topology, const std::vector<int>& free) {
  const int count = static_cast<int>(free.size());
  if (count <= 1 || topology.cores_per_device < 1) return std::min(count, 1);
  return largest(1, count, [&](int size) {
    return fits(topology, free, size, choose_cores, explain_cores, {Reason::Kind::core_range});
  });
}

}  // namespace neuron::allocator
