#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/device.h"

// The official tables of instance types (docs/reference/topology.md). Used for expectations ("16 devices, 15 seen"), by
// the simulator, and for values that the host does not show; a live value always takes precedence.
namespace neuron::core {

enum class TopologyShape { none, chain, line, ring, torus_4x4, switched, unknown };

[[nodiscard]] std::string_view to_string(TopologyShape shape);

// Official per-device facts; which of them are exact differs by type (see the flags of InstanceType).
struct DeviceFacts {
  std::vector<int> neighbours;            // the driver's order
  std::optional<model::Bdf> bdf;          // of one machine; others may differ unless bdf_is_stable
  int numa_node = -1;                     // -1 none or unknown
  std::optional<model::Bdf> nearest_efa;  // official device -> EFA table; nullopt: no table for this type
};

struct NumaFacts {
  int index = 0;
  std::string cpu_list;  // "0-31,64-95"
};

struct EfaFacts {
  model::Bdf bdf;
  std::uint16_t pci_device_id = 0;  // 0xefa0..0xefa3; without a known machine inferred from the Nitro generation
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
  bool efa_count_is_known = true;    // false: no source has it, and efa_count is 0
  int vcpus = 0;                     // 0 unknown
  int host_memory_gib = 0;           // 0 unknown
  bool bdf_is_stable = false;        // devices[i].bdf holds on every machine of the type
  bool numa_is_known = false;        // devices[i].numa_node and numa[] are official, may be assumed
  bool in_ultraserver = false;       // its servers are linked with others, of whom the driver knows
  std::vector<DeviceFacts> devices;  // by index, device_count entries
  std::vector<EfaFacts> efas;        // ascending BDF; efa_count entries, or none where no address is public
  std::vector<NumaFacts> numa;       // ascending; at least one entry
};

// Properties of every device of a family, in all instance types (docs/reference/topology.md#instance-types).
struct FamilyFacts {
  int physical_cores = 0;
  int default_lnc = 1;
  std::uint64_t memory_bytes = 0;
};

[[nodiscard]] FamilyFacts family_facts(model::Family family);

// The type of that exact name ("ml." prefix of SageMaker is ignored), or nullptr. Static lifetime, any thread.
[[nodiscard]] const InstanceType* find_instance_type(std::string_view name);

// find_instance_type() for a name that a user gave. Errors: invalid_argument, with the name and similar ones.
[[nodiscard]] Result<const InstanceType*> instance_type_called(std::string_view name);

// All types, in the order of the reference tables. Static lifetime.
[[nodiscard]] std::span<const InstanceType> all_instance_types();

// Logical-to-physical order of Trainium2/3 devices for a device index (docs/reference/driver.md#logical-cores):
// [position] = physical core. Identity for other families.
[[nodiscard]] std::vector<int> assumed_logical_to_physical(model::Family family, int device_index, int physical_cores);

// All such orders of driver versions and platforms for the device (docs/reference/driver.md#logical-cores), the assumed
// one first: on Trainium2/3 also that of a flipped die, the only difference between the versions' tables.
[[nodiscard]] std::vector<std::vector<int>> possible_logical_to_physical(model::Family family, int device_index,
                                                                         int physical_cores);

// Ids by which AWS's drivers align devices and interfaces: equal ids mean the same aligned group of 1, 4, 8 or 16
// devices (docs/reference/topology.md#device-groups). Values of resource.aws.com/devicegroup<N>_id.
struct DeviceGroupIds {
  std::string of1;   // the address of the nearest interface: "0000:10:1a.0"
  std::string of4;   // 16 hexadecimal digits
  std::string of8;   // the same
  std::string of16;  // the same
  friend bool operator==(const DeviceGroupIds&, const DeviceGroupIds&) = default;
};

// Group ids of a device, by its index; nullopt where AWS has no table for the type, or the index is not in it. Pure.
[[nodiscard]] std::optional<DeviceGroupIds> device_group_ids(const InstanceType& type, int device);

// Group ids of an interface: those of a device whose nearest interface it is; nullopt: no such device. Pure.
[[nodiscard]] std::optional<DeviceGroupIds> device_group_ids(const InstanceType& type, const model::Bdf& efa);

}  // namespace neuron::core
