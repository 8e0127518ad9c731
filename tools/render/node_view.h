#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/health.h"
#include "agent/model/host_scan.h"

// What the listing tools show of a node, decided once and then drawn as table, JSON or picture. Pure, no I/O.
namespace neuron::render {

struct ProcessView {
  int pid = 0;                         // in the init pid namespace, as the driver tells it
  std::string command;                 // printable, already shortened; "" when nobody could resolve it
  std::string runtime_version = "NA";  // the driver does not tell it
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
  std::optional<std::vector<std::string>> pods;  // "namespace/pod", unique; nullopt: nobody could say, or not asked for
};

// The node as seen from here. Where a device node is missing below dev/ (a container that was given some devices), the
// official tool sees only the others and numbers them and their cores from 0; so do we. neighbours keep host indices.
// A device that vanished while we watched (its health says so) stays listed and renumbers nothing.
struct NodeView {
  std::string instance_type;  // "" when unknown
  std::string instance_id;    // "" when unknown
  std::optional<int> lnc;     // only on families that have a choice (Trainium2 and later)
  bool switched = false;      // every device reaches every other alike; what `neighbours` say is then no link
  std::vector<DeviceView> devices;
};

enum class ProcessFilter {
  with_runtime,  // only processes that hold a core or memory of the device, or of which that is not known
  all,           // everyone who has the device open
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
  bool mark_assumed_neighbours = false;  // for our own views
  HealthShown health = HealthShown::no;
  // Each parallel to scan.devices, or empty where nobody asked.
  std::vector<std::vector<std::string>> efas;
  std::vector<std::vector<std::string>> pods;
};

// `scan` is best completed from the catalogue before (core::complete), or assessed. Assumed values are shown like live
// ones.
[[nodiscard]] NodeView make_node_view(const model::HostScan& scan, const ViewRequest& request);

}  // namespace neuron::render
