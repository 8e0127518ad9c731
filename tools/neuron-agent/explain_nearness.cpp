#include "tools/neuron-agent/explain_nearness.h"

#include <algorithm>

#include "agent/core/logical_cores.h"

namespace neuron::agent {
namespace {

using allocator::ChooseRequest;
using allocator::NodeTopology;
using allocator::Reason;

std::vector<int> all_devices(const NodeTopology& topology) {
  std::vector<int> indices;
  for (const auto& device : topology.devices) indices.push_back(device.index);
  return indices;
}

// The nearest set of `size` out of `available`, with its hops; the chooser has no reason where there is no choice.
allocator::Choice nearest_set(const NodeTopology& topology, const std::vector<int>& available, int size) {
  ChooseRequest request;
  request.available = available;
  request.size = size;
  allocator::Choice choice = choose_devices(topology, request);
  if (!choice.reason.hops) choice.reason = explain_devices(topology, request, choice.ids);
  return choice;
}

// The words of a reason up to its numbers: those about what is left mean nothing afterwards.
std::string head_of(const Reason& reason) {
  const std::string size = std::to_string(reason.units);
  if (reason.kind == Reason::Kind::scattered) return "set of " + size + ", not connected";
  if (reason.kind == Reason::Kind::core_scatter) return size + " cores that are not a range";
  const std::string words = phrase(reason);
  return words.substr(0, words.find(','));
}

void add_efas(Nearness& nearness, const NodeTopology& topology, const Hardware& hardware,
              const std::vector<int>& devices) {
  std::vector<int> chosen;
  ChooseRequest request;
  request.prefer_devices = devices;
  for (std::size_t i = 0; i < topology.efas.size(); ++i) {
    request.available.push_back(static_cast<int>(i));
    if (hardware.efas.contains(topology.efas[i].name)) chosen.push_back(static_cast<int>(i));
  }
  if (chosen.empty() || devices.empty()) return;
  request.size = static_cast<int>(chosen.size());
  nearness.near_efas = explain_efas(topology, request, chosen).nearest;
  nearness.best_efas = explain_efas(topology, request, choose_efas(topology, request).ids).nearest;
}

}  // namespace

std::vector<int> free_devices(const model::HostScan& host, const std::map<std::string, Hardware>& all,
                              const std::string& holder) {
  std::vector<int> free;
  for (const model::NeuronDevice& device : host.devices) {
    const bool held = std::any_of(all.begin(), all.end(), [&](const auto& entry) {
      return entry.first != holder && entry.second.cores.contains(device.index);
    });
    if (!held && device.health.state != model::HealthState::unhealthy) free.push_back(device.index);
  }
  return free;
}

Nearness nearness_of(const model::HostScan& host, const NodeTopology& topology, const Hardware& hardware,
                     const std::vector<int>& free) {
  Nearness nearness;
  std::vector<int> devices;
  std::vector<int> cores;
  for (const auto& [index, ids] : hardware.cores) {
    devices.push_back(index);
    cores.insert(cores.end(), ids.begin(), ids.end());
  }
  add_efas(nearness, topology, hardware, devices);
  if (devices.empty()) return nearness;
  bool whole = true;
  for (const model::NeuronDevice& device : host.devices) {
    const auto held = hardware.cores.find(device.index);
    whole &= held == hardware.cores.end() || held->second.size() >= core::core_ids_of(device, host).size();
  }
  ChooseRequest request;
  request.available = all_devices(topology);
  Reason reason = explain_devices(topology, request, devices);
  if (!whole) {
    const Reason range = explain_cores(topology, {}, cores);
    nearness.scattered = range.kind == Reason::Kind::core_scatter;
    nearness.shape = head_of(range);
  } else {
    nearness.shape = head_of(reason);
  }
  nearness.hops = reason.hops;
  nearness.numa_nodes = reason.numa_nodes;
  const auto count = static_cast<int>(devices.size());
  if (nearness.hops) nearness.best_hops = nearest_set(topology, request.available, count).reason.hops;
  if (!whole || !nearness.hops || !nearness.best_hops || *nearness.hops <= *nearness.best_hops) return nearness;
  const allocator::Choice now = nearest_set(topology, free, count);
  const bool enough = static_cast<int>(now.ids.size()) == count;
  if (enough && now.reason.hops && *now.reason.hops < *nearness.hops) nearness.better_now = now.ids;
  return nearness;
}

}  // namespace neuron::agent
