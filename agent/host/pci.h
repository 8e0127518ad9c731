#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/host/fs_root.h"
#include "agent/model/device.h"

namespace neuron::host {

inline constexpr std::uint16_t kAmazonVendor = 0x1d0f;

// One PCI function of vendor 1d0f. Passive data.
struct PciFunction {
  model::Bdf bdf;
  std::uint16_t device_id = 0;  // sys/bus/pci/devices/<bdf>/device
};

[[nodiscard]] inline bool is_efa(const PciFunction& function) {
  return (function.device_id & 0xfff0U) == 0xefa0U;
}

// Where a function is in the machine. Cannot change while the function stays. Passive data.
struct PciLocality {
  std::optional<int> numa_node;          // sys/bus/pci/devices/<bdf>/numa_node; -1 = none
  std::optional<std::vector<int>> cpus;  // sys/bus/pci/devices/<bdf>/local_cpulist; ascending
  std::string switch_key;                // see switch_key_of; "" when unknown
  std::string pcie_root;                 // see pcie_root_of; "" when unknown
  std::vector<model::ReadProblem> problems;
};

// "sys/bus/pci/devices/<bdf>"
[[nodiscard]] std::string pci_path(const model::Bdf& bdf);

// The Amazon functions of one machine, read again only when the list of functions changed.
// One thread at a time.
class PciInventory {
 public:
  enum class Change { none, changed };

  // Looks at the list of functions; a first look is a change. A machine without PCI has none, which is no problem.
  [[nodiscard]] Change refresh(const FsRoot& root);

  [[nodiscard]] const std::vector<PciFunction>& amazon_functions() const { return functions_; }  // ascending BDF
  // The chip of all Neuron functions when they agree; one driver serves one architecture only.
  [[nodiscard]] std::optional<model::Family> common_family() const;
  [[nodiscard]] bool was_read() const { return looked_; }
  [[nodiscard]] const PciFunction* find(const model::Bdf& bdf) const;  // nullptr: not there, or not Amazon's
  [[nodiscard]] const std::vector<model::ReadProblem>& problems() const { return problems_; }

  // Read on first demand, then kept until the list changes. Valid until the next refresh.
  [[nodiscard]] const PciLocality& locality(const FsRoot& root, const model::Bdf& bdf);

 private:
  void identify_functions(const FsRoot& root);

  bool looked_ = false;
  std::vector<std::string> names_;  // sys/bus/pci/devices
  std::vector<PciFunction> functions_;
  std::map<model::Bdf, PciLocality> localities_;
  std::vector<model::ReadProblem> problems_;
};

}  // namespace neuron::host
