#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "agent/allocator/graph.h"

namespace neuron::allocator {
namespace {

std::vector<int> sorted_unique(std::vector<int> ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
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

}  // namespace

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

}  // namespace neuron::allocator
