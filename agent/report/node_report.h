#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/holdings/holding.h"
#include "agent/model/allocation.h"
#include "agent/model/health.h"
#include "agent/model/host_scan.h"

// Everything that is known of a node, put together once and then written as JSON (here), CSV, picture or table
// (tools/render). Passive data and pure functions; unlike NodeView it keeps values that the official tool does not
// show, and the origin of values.
namespace neuron::report {

// One container and what it holds through device plugins, or by one claim, as the kubelet reports it.
struct PodUse {
  std::string pod_namespace;  // "" with the next two: the kubelet has not named the holder yet
  std::string pod;
  std::string container;
  std::set<int> devices;       // held whole, or through some of their cores
  std::set<int> cores;         // global logical ids, of whole devices too
  std::set<std::string> efas;  // RDMA names
  std::string claim{};         // ResourceClaim of the pod's namespace; "" = through device plugins
  friend bool operator==(const PodUse&, const PodUse&) = default;
};

struct NodeReport {
  model::HostScan host;                     // completed from the catalogue; with health where it was asked for
  std::vector<std::vector<int>> core_ids;   // parallel to host.devices: global logical ids; empty = unknown
  std::vector<std::vector<int>> near_efas;  // parallel to host.devices: positions in host.efas
  // For the picture; each may be empty, which means unknown. [device][position of the logical core] = physical cores
  std::vector<std::vector<std::vector<int>>> physical_cores;
  std::vector<std::string> pci_keys;        // parallel to host.devices: switch_key of the interfaces beside it, or ""
  bool switched = false;                    // the fabric is a switch: neighbours are no links (trn3 and others)
  std::map<int, std::string> commands;      // pid -> printable command line; absent = not resolvable
  std::optional<std::vector<PodUse>> pods;  // nullopt: not asked, or the kubelet did not answer
  std::optional<int> expected_devices;      // what the instance type has; nullopt: unknown type
  std::optional<int> expected_efas;         // the most that the instance type can have; nullopt: unknown
  std::vector<int> missing_devices;         // of the expected ones, by index; of the whole node
  model::Health missing_health;             // the verdict on each of these; not assessed where there are none
  std::optional<int> found_efas;            // of the whole node; nullopt: not counted
  // Indices of devices whose neighbours are assumed although the driver has a list of them: one that may not be read,
  // or an empty one, since it blanks all lists when a device is missing (docs/reference/driver.md#connected-devices).
  // The official tool shows no neighbours then.
  std::set<int> blanked_lists;
  bool own_dev = false;  // dev/ is a container's own: a missing node does not mean a broken device
};

// RDMA names of the interfaces that are nearest to host.devices[position], else their PCI addresses.
[[nodiscard]] std::vector<std::string> near_efa_names(const NodeReport& report, std::size_t position);

// Indices of the devices that host.efas[position] is among the nearest of, ascending.
[[nodiscard]] std::vector<int> near_devices(const NodeReport& report, std::size_t position);

// "namespace/pod" of all holders of this device or part of it, unique, "unknown" for those without a name; nullopt when
// the kubelet did not answer.
[[nodiscard]] std::optional<std::vector<std::string>> pods_on_device(const NodeReport& report, int device_index);
[[nodiscard]] std::optional<std::vector<std::string>> pods_on_efa(const NodeReport& report, const std::string& name);

// Only these devices (by index of the host), the interfaces nearest to them, and the pods that hold any of these.
[[nodiscard]] NodeReport only_devices(const NodeReport& report, const std::set<int>& indices);

// Layout of JSON: indented, or one line per document so that a stream of them can be cut at line ends.
enum class JsonLayout { indented, one_line };

// The report as one object in the format "neuron-ls/1", documented in docs/neuron-ls.md and
// docs/schema/neuron-ls-1.json. Unknown values are null, never 0 or ""; every key is always there. Ends in a newline.
// Valid UTF-8 for any report.
[[nodiscard]] std::string node_report_json(const NodeReport& report, JsonLayout layout);

// A document of that format read back, from a process that may be of another version or hostile. Its JSON is `json`
// again if node_report_json wrote that; what the format leaves out is unknown, but for what follows from the rest:
// fabric, physical cores and PCI parents. A problem is its sentence alone. Unknown keys are ignored, and missing
// ones unknown. data_corrupt: it is longer than kMostDocumentBytes, no JSON, of another format, or a value is of the
// wrong type or out of bounds; the message names its key.
[[nodiscard]] Result<NodeReport> parse_node_report(std::string_view json);
inline constexpr std::size_t kMostDocumentBytes = 4 << 20;

// ---- From a scan and what containers hold: the same for neuron-ls and for the agent's /node

// Indices of devices whose list of neighbours the driver shows empty: of a scan before the tables complete it.
[[nodiscard]] std::set<int> empty_lists(const model::HostScan& scan);

// Makes the report of a completed or assessed host. `empty_lists`: as the function, of its scan. Leaves out pods,
// commands and own_dev.
[[nodiscard]] NodeReport make_node_report(model::HostScan host, std::set<int> empty_lists = {});

// Adds the values that only the picture shows: physical_cores, pci_keys and switched.
void add_picture(NodeReport& report);

// Containers that hold devices, cores and interfaces of the report's host: the kubelet's ids as this project's
// resources number them (aws.amazon.com/neuroncore, neuron, neurondevice; vpc.amazonaws.com/efa), and names of devices
// in claims of `driver` ("neuron.aws.com"). One entry per container and claim, and one for all that a container has
// through device plugins, in order of namespace, pod, container and claim. Other resources and drivers, and ids that
// this node does not have, are left out.
[[nodiscard]] std::vector<PodUse> pod_uses(const std::vector<model::Allocation>& allocations, const NodeReport& report,
                                           std::string_view driver);

// Makes the pods' uses from the agent's holdings, with positions of interfaces in report.host.efas. A holder that the
// kubelet has not named yet has an entry without pod.
[[nodiscard]] std::vector<PodUse> pod_uses(const std::vector<holdings::Holding>& held, const NodeReport& report);

}  // namespace neuron::report
