#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/host/fs_root.h"
#include "agent/model/host_scan.h"

// The machine's PCI functions, their places, and its NUMA nodes.
namespace neuron::host {

inline constexpr std::uint16_t kAmazonVendor = 0x1d0f;
inline constexpr std::size_t kMaxFunctions = 4096;  // of PCI, in hwloc's answer

// One PCI function of vendor 1d0f. Passive data.
struct PciFunction {
  model::Bdf bdf;
  std::uint16_t device_id = 0;  // sys/bus/pci/devices/<bdf>/device
  friend bool operator==(const PciFunction&, const PciFunction&) = default;
};

[[nodiscard]] inline bool is_efa(const PciFunction& function) {
  return (function.device_id & 0xfff0U) == 0xefa0U;
}

// The place of a function in the machine; constant while the function stays. Passive data.
struct PciLocality {
  std::optional<int> numa_node;          // sys/bus/pci/devices/<bdf>/numa_node; -1 = none
  std::optional<std::vector<int>> cpus;  // sys/bus/pci/devices/<bdf>/local_cpulist; ascending
  std::string switch_key;                // see switch_key_of; "" when unknown
  std::string pcie_root;                 // see pcie_root_of; "" when unknown
  bool unread = false;                   // a file or link of it exists and could not be read
  std::vector<model::ReadProblem> problems;
};

// "sys/bus/pci/devices/<bdf>"
[[nodiscard]] std::string pci_path(const model::Bdf& bdf);

// The Amazon functions of one machine, read again only when the list of functions changed; unreadable ids are read
// again each time. One thread at a time.
class PciInventory {
 public:
  enum class Change { none, changed };

  // Reads the list of functions; the first one is a change. A machine without PCI has none, which is no problem. While
  // the list or an id cannot be read, its last value stays.
  [[nodiscard]] Change refresh(const FsRoot& root);

  [[nodiscard]] const std::vector<PciFunction>& amazon_functions() const { return functions_; }  // ascending BDF
  // The family of all Neuron functions when they agree; one driver serves one architecture only.
  [[nodiscard]] std::optional<model::Family> common_family() const;
  [[nodiscard]] bool was_read() const { return was_read_; }                     // the list, since this was made
  [[nodiscard]] bool list_failed() const { return list_problem_.has_value(); }  // the newest refresh
  // Listed functions of an unknown kind, since their ids could not be read yet.
  [[nodiscard]] std::vector<model::Bdf> unidentified() const;
  [[nodiscard]] const PciFunction* find(const model::Bdf& bdf) const;  // nullptr: not there, or not Amazon's
  [[nodiscard]] std::vector<model::ReadProblem> problems() const;

  // Read on first demand, then kept until the list changes; unreadable parts are read again. Valid until the next
  // refresh or locality.
  [[nodiscard]] const PciLocality& locality(const FsRoot& root, const model::Bdf& bdf);

 private:
  [[nodiscard]] Change identify(const FsRoot& root, const std::vector<model::Bdf>& addresses);

  bool was_read_ = false;
  std::vector<std::string> names_;      // sys/bus/pci/devices
  std::vector<PciFunction> functions_;  // Amazon's
  std::map<model::Bdf, PciLocality> localities_;
  std::optional<model::ReadProblem> list_problem_;
  std::map<model::Bdf, model::ReadProblem> id_problems_;  // of functions whose ids could not be read
};

// Locality by hwloc. It costs milliseconds, so it is read again only when the set of PCI functions changes.
struct MachineTopology {
  std::vector<model::NumaNode> numa_nodes;         // ascending
  std::map<model::Bdf, std::vector<int>> numa_of;  // of Amazon PCI functions (vendor 1d0f); absent = unknown
  friend bool operator==(const MachineTopology&, const MachineTopology&) = default;
};

// Asks hwloc through the helper program neuron-topology, which runs under limits of memory and time of its own, as
// hwloc may hang or crash. Any thread; blocks for at most 6 s. Errors, all beginning with "hwloc: ": internal (hwloc
// failed or crashed; no processors below the root), deadline_exceeded, data_corrupt, not_found (the helper is not
// installed beside this program).
[[nodiscard]] Result<MachineTopology> load_machine_topology(const FsRoot& root);

// The helper's answer: a line with the version, one per node and function, and "end".
[[nodiscard]] std::string format_topology(const MachineTopology& machine);
// Errors: data_corrupt (another version, numbers that no machine has, no "end").
[[nodiscard]] Result<MachineTopology> parse_topology(std::string_view text);

// hwloc's answer, CPUs that this process may not use included; in the library neuron::hwloc, for the helper program
// only, since it may hang, abort or ask for all memory, and takes its root from the environment, which this sets. Of a
// root other than "/" it gets a copy in a temporary directory. Call it while there is one thread. Errors: internal,
// with hwloc's errno, also where the root describes no processors.
[[nodiscard]] Result<MachineTopology> read_with_hwloc(const FsRoot& root);

}  // namespace neuron::host
