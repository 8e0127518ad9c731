#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "agent/allocator/allocator.h"
#include "test/bench/fragmentation_workload.h"

// The judge of the simulation: what is free, which sets the runtime accepts, how good a set is. Shares no code with the
// allocator.
namespace neuron::bench {

// What one container got, ascending.
struct Placement {
  std::vector<int> ids;   // devices or global cores, as the request's unit says
  std::vector<int> efas;  // positions in NodeTopology::efas
};

// Static facts of a node. At most 16 devices, numbered from 0 without holes.
class Fabric {
 public:
  explicit Fabric(allocator::NodeTopology topology);

  [[nodiscard]] const allocator::NodeTopology& topology() const { return topology_; }
  [[nodiscard]] int devices() const { return static_cast<int>(topology_.devices.size()); }
  [[nodiscard]] int per_device() const { return topology_.cores_per_device; }
  [[nodiscard]] int hops(int a, int b) const { return hops_[static_cast<std::size_t>(a * devices() + b)]; }

  // Whether the runtime starts on exactly these units: torus: aligned groups for 1, 4, 8 and 16, a connected set for
  // any other size; ring and line: one contiguous run; cores: one range as the container counts.
  [[nodiscard]] bool valid(Unit unit, const std::vector<int>& ids) const;
  // The devices touched.
  [[nodiscard]] std::vector<int> devices_of(Unit unit, const std::vector<int>& ids) const;
  // Mean hops over all pairs; nullopt for one device.
  [[nodiscard]] std::optional<double> mean_hops(const std::vector<int>& devices) const;
  // Every EFA is the nearest of one of the devices, and every device has its nearest among them (official tables).
  [[nodiscard]] bool nics_aligned(const std::vector<int>& devices, const std::vector<int>& efas) const;

 private:
  [[nodiscard]] bool connected(const std::vector<int>& devices) const;
  [[nodiscard]] bool one_run(const std::vector<int>& devices) const;
  [[nodiscard]] bool one_range(const std::vector<int>& cores) const;

  allocator::NodeTopology topology_;
  std::vector<int> hops_;
};

// What is free on a node. A device touched by a core request is no longer there as a device, and the other way round.
class Occupancy {
 public:
  explicit Occupancy(const Fabric& fabric);

  [[nodiscard]] std::vector<int> free_devices() const;
  [[nodiscard]] std::vector<int> free_cores() const;  // global ids
  [[nodiscard]] std::vector<int> free_efas() const;
  [[nodiscard]] std::vector<int> free_units(Unit unit) const;
  // Whether the scheduler, which only counts, would send the request here.
  [[nodiscard]] bool enough(const Request& request) const;
  // Exhaustive: whether any set of free units would be valid.
  [[nodiscard]] bool any_valid(const Request& request) const;

  // Exhaustive: whether any free valid set of devices would have all of its nearest EFAs free, as many as asked for.
  [[nodiscard]] bool any_aligned(const Request& request) const;

  void take(Unit unit, const Placement& placement);
  void release(Unit unit, const Placement& placement);

 private:
  [[nodiscard]] bool any_valid_devices(int size, const std::function<bool(const std::vector<int>&)>& accepts) const;
  [[nodiscard]] bool any_valid_cores(int size) const;

  const Fabric* fabric_;
  std::vector<char> core_used_;
  std::vector<char> efa_used_;
};

}  // namespace neuron::bench
