#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/core/catalogue.h"
#include "agent/model/host_scan.h"

// An instance type without a machine: where its hardware sits, and what a scan of its healthy, idle node would show.
// Pure.
namespace neuron::core {

// The PCI places of a type's hardware: from the tables, else made up after the types whose places are known. For the
// simulator, and for what a node of the type is expected to show; never for values of a real machine.
struct InstancePlaces {
  std::vector<model::Bdf> devices;  // by index, device_count entries
  std::vector<EfaFacts> efas;       // ascending address, efa_count entries, each with a PCI id and a parent
};

[[nodiscard]] InstancePlaces places_of(const InstanceType& type);

// Whether all addresses of devices, or of interfaces, are from the tables.
[[nodiscard]] bool has_device_addresses(const InstanceType& type);
[[nodiscard]] bool has_efa_addresses(const InstanceType& type);

// The parent of a function: "pci0000:10", or the switch port ("0000:b9:02.1") where the interfaces of the type sit
// behind switches and this bus belongs to one (docs/reference/topology.md#trn2-eight-switches).
[[nodiscard]] std::string pci_parent_of(const model::Bdf& bdf, const std::vector<EfaFacts>& efas);

// The ports above a switch's downstream port: on the two buses before it. A port on bus 0 or 1 sits on a root bus.
struct SwitchPorts {
  model::Bdf root_port;
  model::Bdf upstream;
};
[[nodiscard]] SwitchPorts ports_above(const model::Bdf& downstream_port);
[[nodiscard]] bool is_on_root_bus(const model::Bdf& downstream_port);

// "pci0000:10" of an address on bus 10.
[[nodiscard]] std::string host_bridge_of(const model::Bdf& bdf);

// The host bridge above a parent as of pci_parent_of().
[[nodiscard]] std::string host_bridge_above(const std::string& parent);

// The RDMA name by path (docs/reference/efa.md#names): "rdmap16s25".
[[nodiscard]] std::string rdma_name_of(const model::Bdf& bdf);

// Facts that the type leaves open.
struct TypicalFacts {
  std::optional<int> lnc;      // nullopt: the family's default. Callers check it with has_lnc()
  std::string driver_version;  // "" = unknown
};

// Whether a node of the type can have that LNC.
[[nodiscard]] bool has_lnc(const InstanceType& type, int lnc);

// Completed and with all health. Addresses that are not public are made up, the same as the simulator's. Left out are
// facts of one machine: serial numbers, instance id, the ids of an UltraServer (of which it is node 0 of 4). Pure.
[[nodiscard]] model::HostScan typical_host(const InstanceType& type, const TypicalFacts& facts);

}  // namespace neuron::core
