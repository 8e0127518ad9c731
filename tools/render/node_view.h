#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/health.h"
#include "agent/model/host_scan.h"

// The values that the listing tools show of a node, decided once and then drawn as table, JSON or topology. Pure, no
// I/O.
namespace neuron::render {

struct ProcessView {
  int pid = 0;                         // in the init pid namespace, as the driver reports it
  std::string command;                 // printable, already shortened; "" when it could not be resolved
  std::string runtime_version = "NA";  // the driver does not report it
  friend bool operator==(const ProcessView&, const ProcessView&) = default;
};

// One device that this process could open. An empty optional is shown as "NA".
struct DeviceView {
  int index = 0;                             // as shown; see NodeView
  int host_index = 0;                        // N of neuron<N> in sysfs; what `neighbours` refers to
  std::optional<std::vector<int>> core_ids;  // logical core ids, ascending
  std::optional<std::uint64_t> memory_bytes;
  std::vector<int> neighbours;     // host indices in the driver's order; empty = none or unknown
  bool neighbours_marked = false;  // they are of the official table, and marked as such
  std::optional<model::Bdf> bdf;
  std::optional<std::vector<int>> cpus;  // ascending
  std::optional<int> numa_node;          // -1 = the platform has none
  std::vector<ProcessView> processes;    // ascending pid; empty also when the driver could not be asked
  std::optional<model::Health> health;   // nullopt: not asked for
  std::vector<std::string> efas;         // names of the nearest interfaces; empty = none, unknown or not asked for
  std::optional<std::vector<std::string>> pods;  // "namespace/pod", unique; nullopt: unknown, or not asked for
};

// The node as seen from here. Where a device node is missing below dev/ (a container that was given some devices), the
// official tool sees only the others and numbers them and their cores from 0; so does this view. neighbours keep host
// indices.
// A device that vanished between two scans (its health says so) stays listed and renumbers nothing.
struct NodeView {
  std::string instance_type;  // "" when unknown
  std::string instance_id;    // "" when unknown
  std::optional<int> lnc;     // only on families that have a choice (Trainium2 and later)
  bool switched = false;      // every device reaches every other alike; `neighbours` are then no links
  std::vector<DeviceView> devices;
};

enum class ProcessFilter {
  with_runtime,  // only processes that hold a core or memory of the device, or of which that is not known
  all,           // every process that has the device open
};

inline constexpr std::size_t kCommandWidth = 40;      // cells of the COMMAND column
inline constexpr std::size_t kWideCommandWidth = 80;  // the same with --wide

enum class HealthShown { no, yes };

struct ViewRequest {
  std::vector<std::vector<int>> core_ids;  // parallel to scan.devices, host numbering; empty entry = unknown
  std::map<int, std::string> commands;     // pid -> printable command line; absent = not resolvable
  ProcessFilter filter = ProcessFilter::with_runtime;
  std::size_t command_width = kCommandWidth;
  bool switched = false;
  bool mark_assumed_neighbours = false;  // for views other than the official ones
  HealthShown health = HealthShown::no;
  // Each parallel to scan.devices, or empty where not asked for.
  std::vector<std::vector<std::string>> efas;
  std::vector<std::vector<std::string>> pods;
};

[[nodiscard]] bool has_logical_core_choice(const model::NeuronDevice& device);  // LNC 1 or 2

// `scan` is best completed from the catalogue before (core::complete), or assessed. Assumed values are shown like live
// ones.
[[nodiscard]] NodeView make_node_view(const model::HostScan& scan, const ViewRequest& request);

// The array that the official `neuron-ls -j` writes up to SDK 2.33 (docs/reference/official-tools.md#neuron-ls-json):
// 4-space indent, no final newline, numa_node a string, connected_to null without neighbours, bytes for memory_size.
// instance_type and instance_id are left out when unknown, logical_neuroncore_config where the family has no choice.
// Unknown strings are "NA", unknown nc_count and memory_size null. Valid UTF-8 for any commands.
[[nodiscard]] std::string device_json(const NodeView& view);

using DeviceGraph = std::map<int, std::set<int>>;  // host index -> linked host indices, symmetric

inline constexpr int kTorusSide = 4;

// Whether `neighbours` are exactly those that device `index` has in the 4x4 torus.
[[nodiscard]] bool has_torus_neighbours(int index, const std::vector<int>& neighbours);

// The ids of a chain or ring in the order of its links, from `start`, lower neighbour first.
[[nodiscard]] std::vector<int> walk(const DeviceGraph& graph, int start);

// The drawing that `neuron-ls --topology` prints below its table, leading blank lines included
// (docs/reference/official-tools.md#neuron-ls-topology). The 4x4 torus and the chain are the official drawings; a ring
// is one row whose ends carry the torus' wrap-around arms; devices behind a switch stand above and below it;
// unconnected devices stand side by side, with a line that says so when none of several is linked; anything else is a
// list of links per device. Nodes carry host indices, as CONNECTED DEVICES does. A torus with devices missing, or not
// visible here, keeps its shape with empty nodes. UTF-8.
[[nodiscard]] std::string draw_topology(const NodeView& view);

}  // namespace neuron::render
