#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/model/health.h"
#include "agent/model/host_scan.h"

// Everything that is known of a node, put together once and then written as JSON, CSV or table. Passive data and pure
// functions; unlike NodeView it keeps what the official tool does not show, and says where values come from.
namespace neuron::render {

// One container and what it holds through device plugins, or by one claim, by the kubelet's word.
struct PodUse {
  std::string pod_namespace;
  std::string pod;
  std::string container;
  std::set<int> devices;       // held whole, or through some of their cores
  std::set<int> cores;         // global logical ids, of whole devices too
  std::set<std::string> efas;  // RDMA names
  std::string claim{};         // ResourceClaim of the pod's namespace; "" = through device plugins
  friend bool operator==(const PodUse&, const PodUse&) = default;
};

struct NodeReport {
  model::HostScan host;                     // completed from the catalogue; with health where somebody asked for it
  std::vector<std::vector<int>> core_ids;   // parallel to host.devices: global logical ids; empty = unknown
  std::vector<std::vector<int>> near_efas;  // parallel to host.devices: positions in host.efas
  // For the picture; each may be empty, which means unknown. [device][position of the logical core] = physical cores
  std::vector<std::vector<std::vector<int>>> physical_cores;
  std::vector<std::string> pci_keys;        // parallel to host.devices: switch_key of the interfaces beside it, or ""
  bool switched = false;                    // the fabric is a switch: neighbours are no links (trn3 and others)
  std::map<int, std::string> commands;      // pid -> printable command line; absent = not resolvable
  std::optional<std::vector<PodUse>> pods;  // nullopt: not asked, or the kubelet did not answer
  std::optional<int> expected_devices;      // what the instance type has; nullopt: unknown type
  std::optional<int> expected_efas;         // the most that the instance type can have
  std::vector<int> missing_devices;         // of the expected ones, by index; of the whole node
  model::Health missing_health;             // the verdict on each of these; not assessed where there are none
  std::optional<int> found_efas;            // of the whole node; nullopt: nobody counted
  // Indices of devices whose neighbours are assumed although the driver has a list of them: one that may not be read,
  // or an empty one, since it blanks all lists when a device is missing (docs/reference/driver.md#connected-devices).
  // The official tool shows no neighbours then.
  std::set<int> blanked_lists;
  bool own_dev = false;  // dev/ is a container's own: a node that is not there says nothing
};

// RDMA names of the interfaces that are nearest to host.devices[position], else their PCI addresses.
[[nodiscard]] std::vector<std::string> near_efa_names(const NodeReport& report, std::size_t position);

// Indices of the devices that host.efas[position] is among the nearest of, ascending.
[[nodiscard]] std::vector<int> near_devices(const NodeReport& report, std::size_t position);

// "namespace/pod" of everybody who holds this device or some of it, unique; nullopt when nobody could say.
[[nodiscard]] std::optional<std::vector<std::string>> pods_on_device(const NodeReport& report, int device_index);
[[nodiscard]] std::optional<std::vector<std::string>> pods_on_efa(const NodeReport& report, const std::string& name);

// Only these devices (by index of the host), the interfaces nearest to them, and the pods that hold any of it.
[[nodiscard]] NodeReport only_devices(const NodeReport& report, const std::set<int>& indices);

}  // namespace neuron::render
