#include "plugin/device/pre_start_gate.h"

#include <algorithm>

#include "agent/core/logical_cores.h"

namespace neuron::plugin {
namespace {

// Physical cores behind a logical one: LNC of them. `own`: the logical cores of the container, ascending.
void add_physical_cores(const grant::NodeUnits& node, int core_id, const std::vector<int>& own,
                        std::vector<MemoryGate::Core>& cores) {
  const int index = node.device_of_core(core_id);
  const model::NeuronDevice* device = node.device(index);
  const auto& lnc = node.snapshot().host.lnc;
  if (device == nullptr || !lnc) return;
  const int first_id = index * node.topology().cores_per_device;
  std::vector<int> places;
  for (int i = 0; i < lnc->value; ++i) places.push_back((core_id - first_id) * lnc->value + i);
  for (const core::CorePlace& place : core::core_places(*device, node.snapshot().host, places)) {
    MemoryGate::Core core{"core " + std::to_string(core_id), index, place.physical, {}};
    for (const int other : place.others) {
      const int owner = first_id + other / lnc->value;
      if (!std::binary_search(own.begin(), own.end(), owner)) core.maybe_of.push_back(owner);
    }
    cores.push_back(std::move(core));
  }
}

Result<std::vector<MemoryGate::Core>> cores_of(const grant::NodeUnitsPtr& node, model::Resource resource,
                                               const std::vector<std::string>& ids) {
  if (!node) return fail(ErrorCode::unavailable, "not scanned yet");
  std::vector<int> own;
  for (const std::string& id : ids) {
    TRY_ASSIGN(const int unit, node->unit_of(resource, id));
    for (const int core : node->cores_of(resource, unit)) own.push_back(core);
  }
  std::sort(own.begin(), own.end());
  std::vector<MemoryGate::Core> cores;
  for (const int core : own) add_physical_cores(*node, core, own, cores);
  return cores;
}

bool are_held(const Allocations& allocations, const std::vector<int>& cores) {
  const std::vector<int> held = allocations.held_cores();
  return std::any_of(cores.begin(), cores.end(),
                     [&](int id) { return std::binary_search(held.begin(), held.end(), id); });
}

std::string owner_pids(const Allocations& allocations, int index, int physical_core) {
  const grant::NodeUnitsPtr node = allocations.node();
  const model::NeuronDevice* device = node ? node->device(index) : nullptr;
  return device == nullptr ? "" : core::pids_on_core(*device, physical_core);
}

std::string group_of(model::Resource resource) {
  return std::string(model::resource_name(resource));
}

}  // namespace

PreStartGate::PreStartGate(Allocations& allocations, MemoryInUse memory_in_use, Run run, Post post, const Clock& clock)
    : allocations_(allocations),
      gate_({std::move(memory_in_use), std::move(run), std::move(post),
             [&allocations](const std::vector<int>& cores) { return are_held(allocations, cores); },
             [&allocations](int device, int core) { return owner_pids(allocations, device, core); }},
            clock) {}

void PreStartGate::wait(model::Resource resource, const std::vector<std::string>& ids, Done done) {
  auto cores = cores_of(allocations_.node(), resource, ids);
  if (!cores) return done(cores.error());
  gate_.wait(group_of(resource), "resource=" + group_of(resource), *std::move(cores), std::move(done));
}

void PreStartGate::cancel(model::Resource resource) {
  gate_.cancel(group_of(resource), "the plugin is restarting on another socket; try again");
}

void PreStartGate::cancel_all() {
  gate_.cancel_all();
}

}  // namespace neuron::plugin
