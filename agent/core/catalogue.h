#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/device.h"

// What the official tables fix per instance type (docs/reference/topology.md). Used for expectations
// ("16 devices, 15 seen"), by the simulator, and where the host is silent; a live answer always beats it.
namespace neuron::core {

enum class TopologyShape { none, chain, line, ring, torus_4x4, switched, unknown };

[[nodiscard]] std::string_view to_string(TopologyShape shape);

// Official per-device facts; which of them are exact differs by type (see the flags of InstanceType).
struct DeviceFacts {
  std::vector<int> neighbours;            // the driver's order
  std::optional<model::Bdf> bdf;          // one that was seen; a host may differ unless bdf_is_stable
  int numa_node = -1;                     // -1 none or unknown
  std::optional<model::Bdf> nearest_efa;  // official device -> EFA table; nullopt: no table for this type
};

struct NumaFacts {
  int index = 0;
  std::string cpu_list;  // "0-31,64-95"
};

struct EfaFacts {
  model::Bdf bdf;
  std::uint16_t pci_device_id = 0;  // 0xefa0..0xefa3; where no machine was seen, inferred from the Nitro generation
  int numa_node = -1;               // -1 none or unknown
  std::string pci_parent;           // "pci0000:10" (host bridge) or "0000:b9:01.6" (switch port); "" unknown
};

struct InstanceType {
  std::string name;                     // "trn1.32xlarge"
  std::optional<model::Family> family;  // nullopt: no Neuron (GPU node with EFA)
  int device_count = 0;
  int physical_cores_per_device = 0;
  int default_lnc = 1;
  TopologyShape shape = TopologyShape::none;
  int efa_count = 0;
  int vcpus = 0;                     // 0 unknown
  int host_memory_gib = 0;           // 0 unknown
  bool bdf_is_stable = false;        // devices[i].bdf holds on every machine of the type
  bool numa_is_known = false;        // devices[i].numa_node and numa[] are official, may be assumed
  std::vector<DeviceFacts> devices;  // by index, device_count entries
  std::vector<EfaFacts> efas;        // ascending BDF; efa_count entries, or none where no address is public
  std::vector<NumaFacts> numa;       // ascending; at least one entry
};

// What every chip of a family has, whatever the instance type (docs/reference/topology.md#instance-types).
struct FamilyFacts {
  int physical_cores = 0;
  int default_lnc = 1;
  std::uint64_t memory_bytes = 0;
};

[[nodiscard]] FamilyFacts family_facts(model::Family family);

// The type of that exact name ("ml." prefix of SageMaker is ignored), or nullptr. Static lifetime, any thread.
[[nodiscard]] const InstanceType* find_instance_type(std::string_view name);

// All types, in the order of the reference tables. Static lifetime.
[[nodiscard]] std::span<const InstanceType> all_instance_types();

// Logical-to-physical order of Trainium2/3 devices for a device index (docs/reference/driver.md#logical-cores):
// [position] = physical core. Identity for other families.
[[nodiscard]] std::vector<int> assumed_logical_to_physical(model::Family family, int device_index, int physical_cores);

// Every such order that some driver version or platform has for the device (docs/reference/driver.md#logical-cores),
// the assumed one first: on Trainium2/3 also the one of a flipped die, which the tables that differ between versions
// come down to.
[[nodiscard]] std::vector<std::vector<int>> possible_logical_to_physical(model::Family family, int device_index,
                                                                         int physical_cores);

}  // namespace neuron::core
