#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/allocator/allocator.h"
#include "agent/base/result.h"
#include "agent/model/resource.h"
#include "agent/model/snapshot.h"

namespace neuron::grant {

// One snapshot in the kubelet's terms: the units of every resource, their ids, health and hardware. Immutable once
// built; shared by all RPCs. A unit is an integer: device index, global logical core id, or position among the EFA
// interfaces. While LNC is unread (HostScan::lnc_is_unread) neither cores nor devices are units: which cores a
// container would get, and which ones are held, is not known.
class NodeUnits {
 public:
  explicit NodeUnits(model::SnapshotPtr snapshot);
  // A snapshot of `scanned` whose cores may be numbered with another LNC: runtime_lnc() stays that of the scan.
  NodeUnits(model::SnapshotPtr renumbered, const NodeUnits& scanned);

  [[nodiscard]] const model::Snapshot& snapshot() const { return *snapshot_; }
  // The LNC that a runtime reads which starts now: opt/aws/neuron/logical_nc_config, else the chip's default.
  // nullopt: unknown. Differs from the snapshot's while held cores keep their numbers.
  [[nodiscard]] std::optional<int> runtime_lnc() const { return runtime_lnc_; }
  [[nodiscard]] const allocator::NodeTopology& topology() const { return topology_; }

  // Units of a resource that the node has, offered or not, ascending; empty = none.
  [[nodiscard]] const std::vector<int>& units(model::Resource resource) const;

  [[nodiscard]] std::string id_of(model::Resource resource, int unit) const;
  // Errors: invalid_argument, naming the id and how ids look.
  [[nodiscard]] Result<int> unit_of(model::Resource resource, std::string_view id) const;

  // Of a logical core the worst of its physical ones; of a device as a whole.
  [[nodiscard]] const model::Health& health_of(model::Resource resource, int unit) const;
  [[nodiscard]] std::vector<int> numa_of(model::Resource resource, int unit) const;  // empty: unknown

  // Global core ids of a unit, ascending; empty for EFA.
  [[nodiscard]] std::vector<int> cores_of(model::Resource resource, int unit) const;
  [[nodiscard]] int device_of_core(int core) const;                       // valid core ids only
  [[nodiscard]] int device_of(model::Resource resource, int unit) const;  // index, of a valid unit; -1 for EFA
  [[nodiscard]] const model::NeuronDevice* device(int index) const;       // nullptr when absent
  [[nodiscard]] const model::EfaInterface& efa(int unit) const;

 private:
  [[nodiscard]] std::size_t device_position(model::Resource resource, int unit) const;
  void find_health_of_cores(std::size_t position, const std::vector<int>& core_ids);

  model::SnapshotPtr snapshot_;
  std::optional<int> runtime_lnc_;
  allocator::NodeTopology topology_;
  std::vector<int> device_units_;
  std::vector<int> core_units_;
  std::vector<int> efa_units_;                     // positions of the interfaces that have a name
  std::vector<std::vector<int>> cores_;            // by position in snapshot.host.devices
  std::map<int, std::size_t> position_of_device_;  // device index -> position in snapshot.host.devices
  std::map<int, std::size_t> position_of_core_;    // core id -> position of its device
  // Core id -> the worst health of its physical cores, owned by the snapshot; no entry where they were not assessed.
  std::map<int, const model::Health*> health_of_core_;
  std::map<std::string, int, std::less<>> efa_by_name_;
};

using NodeUnitsPtr = std::shared_ptr<const NodeUnits>;

}  // namespace neuron::grant
