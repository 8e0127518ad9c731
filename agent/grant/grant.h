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
  // The LNC that a runtime reads which starts now: opt/aws/neuron/logical_nc_config, else the device's default.
  // nullopt: unknown. Differs from the snapshot's while held cores keep their numbers.
  [[nodiscard]] std::optional<int> runtime_lnc() const { return runtime_lnc_; }
  [[nodiscard]] const allocator::NodeTopology& topology() const { return topology_; }

  // Units of a resource that the node has, offered or not, ascending; empty = none.
  [[nodiscard]] const std::vector<int>& units(model::Resource resource) const;

  [[nodiscard]] std::string id_of(model::Resource resource, int unit) const;
  // Errors: invalid_argument, naming the id and how ids look.
  [[nodiscard]] Result<int> unit_of(model::Resource resource, std::string_view id) const;

  // The worst health among a logical core's physical cores; for a whole device, the device's.
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

// The LNC of a container's runtime, over the node's file (docs/reference/driver.md).
inline constexpr const char* kLncVariable = "NEURON_LOGICAL_NC_CONFIG";

// Numbering in NEURON_RT_VISIBLE_CORES (docs/resources.md#answers-to-allocate).
enum class CoreNumbering { container, host };

struct GrantOptions {
  std::string host_path_prefix;  // prepended to "/dev/…" on the host side; "" on a live node
  CoreNumbering numbering = CoreNumbering::container;
  bool cdi_names = false;  // "aws.amazon.com/neuron=0" in addition to the device nodes
};

// Grant to one container for one resource. Paths and variables are in the order of the answer to the kubelet.
struct Grant {
  struct DeviceNode {
    std::string host_path;
    std::string container_path;
  };
  std::map<std::string, std::string> envs;
  std::vector<DeviceNode> device_nodes;  // permissions are always "rw"
  std::vector<std::string> cdi_names;
};

// Contents of Allocate's answer (docs/resources.md#answers-to-allocate). Pure; any thread.
//
// NEURON_RT_VISIBLE_CORES for `cores` (global ids, ascending) in a container that sees `devices` (indices, ascending).
// Numbered by the container, the k-th device it sees has the numbers k*n … k*n+n-1, n being the cores per device.
[[nodiscard]] std::string visible_cores(const NodeUnits& node, const std::vector<int>& devices,
                                        const std::vector<int>& cores, CoreNumbering numbering);

// That variable, and /dev/neuron<N> of each device. `devices`: all that `cores` are on. kLncVariable in addition where
// the numbers are of another LNC than a runtime would read on the node (NodeUnits::runtime_lnc), and only then.
[[nodiscard]] Grant grant_of_cores(const NodeUnits& node, const std::vector<int>& devices,
                                   const std::vector<int>& cores, const GrantOptions& options);

// /dev/infiniband/uverbs<N> of each interface; one without a verbs device adds none. No variables. `efa_units`: units
// of NodeUnits.
[[nodiscard]] Grant grant_of_efas(const NodeUnits& node, const std::vector<int>& efa_units,
                                  const GrantOptions& options);

// Container Device Interface: the names in an Allocate answer mean something only to a runtime that finds them in a
// spec file (docs/reference/kubelet.md#cdi). The answer names the same device nodes without CDI as well, so a runtime
// without it loses nothing.

// The kinds of our specs: the part of a CDI name before "=".
inline constexpr const char* kCdiNeuronKind = "aws.amazon.com/neuron";
inline constexpr const char* kCdiEfaKind = "vpc.amazonaws.com/efa";

// One device of a spec: what a container that names it gets.
struct CdiDevice {
  std::string name;
  std::vector<Grant::DeviceNode> device_nodes;
  std::string permissions = "rw";  // of all nodes: of r, w, m
  std::map<std::string, std::string> envs;
};

// A spec as text, in the order given. A device that gives nothing is left out, since an empty one makes runtimes refuse
// the whole file; "" when there is none. Version 0.5.0, the lowest that has hostPath. Pure.
[[nodiscard]] std::string cdi_text(const std::string& kind, const std::vector<CdiDevice>& devices);

// The spec of one kind as text: one CDI device per unit, named by its id. "" when the node
// has no such unit. Pure.
[[nodiscard]] std::string cdi_spec(const NodeUnits& node, model::Resource resource, const GrantOptions& options);

}  // namespace neuron::grant
