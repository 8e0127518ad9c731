#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/core/allocator.h"
#include "agent/model/snapshot.h"
#include "agent/monitor/watch_hub.h"
#include "plugin/resource.h"

namespace neuron::plugin {

// One snapshot in the kubelet's terms: the units of every resource, their ids, health and silicon. Immutable once
// built; shared by all RPCs. A unit is an integer: device index, global logical core id, or position among the EFA
// interfaces.
class NodeView {
 public:
  explicit NodeView(model::SnapshotPtr snapshot);

  [[nodiscard]] const model::Snapshot& snapshot() const { return *snapshot_; }
  [[nodiscard]] const core::NodeTopology& topology() const { return topology_; }

  // Units of a resource, ascending; empty = the node has none, the resource is not registered.
  [[nodiscard]] const std::vector<int>& units(Resource resource) const;

  [[nodiscard]] std::string id_of(Resource resource, int unit) const;
  // Errors: invalid_argument, naming the id and how ids look.
  [[nodiscard]] Result<int> unit_of(Resource resource, std::string_view id) const;

  // Of a logical core the worst of its physical ones; of a device as a whole.
  [[nodiscard]] const model::Health& health_of(Resource resource, int unit) const;
  [[nodiscard]] std::vector<int> numa_of(Resource resource, int unit) const;  // empty: unknown

  // Silicon of a unit: global core ids, ascending; empty for EFA.
  [[nodiscard]] std::vector<int> cores_of(Resource resource, int unit) const;
  [[nodiscard]] int device_of_core(int core) const;                  // valid core ids only
  [[nodiscard]] const model::NeuronDevice* device(int index) const;  // nullptr when absent
  [[nodiscard]] const model::EfaInterface& efa(int unit) const;

 private:
  [[nodiscard]] std::size_t device_position(Resource resource, int unit) const;
  void find_health_of_cores(std::size_t position, const std::vector<int>& core_ids);

  model::SnapshotPtr snapshot_;
  core::NodeTopology topology_;
  std::vector<int> device_units_;
  std::vector<int> core_units_;
  std::vector<int> efa_units_;                     // positions of the interfaces that have a name
  std::vector<std::vector<int>> cores_;            // by position in snapshot.host.devices
  std::map<int, std::size_t> position_of_device_;  // device index -> position in snapshot.host.devices
  std::map<int, std::size_t> position_of_core_;    // core id -> position of its device
  // Core id -> the worst of its physical cores, in the snapshot; without entry where nobody judged them.
  std::map<int, const model::Health*> health_of_core_;
  std::map<std::string, int, std::less<>> efa_by_name_;
};

using NodeViewPtr = std::shared_ptr<const NodeView>;

// The list a resource shows the kubelet: every unit, Unhealthy when its hardware is or when `blocked_cores` (ascending)
// contains one of its cores. Nothing is ever dropped: the kubelet crashes on a device that leaves while it is
// allocated.
[[nodiscard]] monitor::UnitList make_unit_list(const NodeView& view, Resource resource,
                                               const std::vector<int>& blocked_cores);

}  // namespace neuron::plugin
