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
  friend bool operator==(const PciFunction&, const PciFunction&) = default;
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
  bool unread = false;                   // a file or link of it is there and could not be read
  std::vector<model::ReadProblem> problems;
};

// "sys/bus/pci/devices/<bdf>"
[[nodiscard]] std::string pci_path(const model::Bdf& bdf);

// The Amazon functions of one machine, read again only when the list of functions changed; those whose ids could not be
// read are read again each time. One thread at a time.
class PciInventory {
 public:
  enum class Change { none, changed };

  // Reads the list of functions; the first one is a change. A machine without PCI has none, which is no problem. While
  // the list or an id cannot be read, what was read of it before stands.
  [[nodiscard]] Change refresh(const FsRoot& root);

  [[nodiscard]] const std::vector<PciFunction>& amazon_functions() const { return functions_; }  // ascending BDF
  // The chip of all Neuron functions when they agree; one driver serves one architecture only.
  [[nodiscard]] std::optional<model::Family> common_family() const;
  [[nodiscard]] bool was_read() const { return was_read_; }                     // the list, since this was made
  [[nodiscard]] bool list_failed() const { return list_problem_.has_value(); }  // the newest refresh
  // Functions that are listed and of which it is not known what they are, since their ids could not be read yet.
  [[nodiscard]] std::vector<model::Bdf> unidentified() const;
  [[nodiscard]] const PciFunction* find(const model::Bdf& bdf) const;  // nullptr: not there, or not Amazon's
  [[nodiscard]] std::vector<model::ReadProblem> problems() const;

  // Read on first demand, then kept until the list changes; what could not be read is read again. Valid until the next
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

}  // namespace neuron::host
