#include "agent/host/pci.h"

#include <algorithm>

#include "agent/base/parse.h"
#include "agent/host/attributes.h"
#include "agent/host/problems.h"

namespace neuron::host {
namespace {

constexpr std::string_view kDevices = "sys/bus/pci/devices";

Result<std::uint16_t> read_id(const FsRoot& root, const std::string& path) {
  TRY_ASSIGN(const std::string text, root.read_attribute(path));
  const auto id = parse_hex(text);
  if (!id || *id > 0xffff) {
    return fail(ErrorCode::data_corrupt, path + ": not a PCI id: \"" + printable(text, 40) + "\"");
  }
  return static_cast<std::uint16_t>(*id);
}

// Reads and parses one optional attribute; absent files are silent, all else is a problem.
template <typename T>
std::optional<T> read_optional(const FsRoot& root, const std::string& path, Result<T> (*parse)(std::string_view),
                               std::vector<model::ReadProblem>& problems) {
  const auto text = root.read_attribute(path);
  if (!text) {
    if (!is_absent(text.error())) note_problem(problems, kMaxDeviceProblems, problem_with(path, text.error()));
    return std::nullopt;
  }
  auto value = parse(*text);
  if (value) return *std::move(value);
  note_problem(problems, kMaxDeviceProblems, problem_with(path, value.error()));
  return std::nullopt;
}

}  // namespace

std::string pci_path(const model::Bdf& bdf) {
  return std::string(kDevices) + '/' + model::to_string(bdf);
}

PciInventory::Change PciInventory::refresh(const FsRoot& root) {
  const auto names = root.list(kDevices);
  std::vector<std::string> seen = names ? *names : std::vector<std::string>();
  if (looked_ && names.has_value() && seen == names_) return Change::none;
  if (looked_ && !names.has_value() && names_.empty()) return Change::none;
  looked_ = true;
  names_ = std::move(seen);
  functions_.clear();
  localities_.clear();
  problems_.clear();
  if (!names && !is_absent(names.error())) {
    note_problem(problems_, kMaxHostProblems, problem_with(std::string(kDevices), names.error()));
  }
  identify_functions(root);
  return Change::changed;
}

void PciInventory::identify_functions(const FsRoot& root) {
  for (const std::string& name : names_) {
    const auto bdf = model::parse_bdf(name);
    if (!bdf) continue;  // five-digit domains of a VMD controller
    const std::string path = pci_path(*bdf);
    const auto vendor = read_id(root, path + "/vendor");
    if (!vendor) note_problem(problems_, kMaxHostProblems, problem_with(path + "/vendor", vendor.error()));
    if (!vendor || *vendor != kAmazonVendor) continue;
    const auto device = read_id(root, path + "/device");
    if (!device) {
      note_problem(problems_, kMaxHostProblems, problem_with(path + "/device", device.error()));
      continue;
    }
    functions_.push_back({*bdf, *device});
  }
  std::sort(functions_.begin(), functions_.end(),
            [](const PciFunction& left, const PciFunction& right) { return left.bdf < right.bdf; });
}

const PciFunction* PciInventory::find(const model::Bdf& bdf) const {
  const auto at =
      std::lower_bound(functions_.begin(), functions_.end(), bdf,
                       [](const PciFunction& function, const model::Bdf& key) { return function.bdf < key; });
  return at != functions_.end() && at->bdf == bdf ? &*at : nullptr;
}

std::optional<model::Family> PciInventory::common_family() const {
  std::optional<model::Family> common;
  for (const PciFunction& function : functions_) {
    const auto family = model::family_of_pci_id(function.device_id);
    if (family && common && *family != *common) return std::nullopt;
    if (family) common = family;
  }
  return common;
}

const PciLocality& PciInventory::locality(const FsRoot& root, const model::Bdf& bdf) {
  const auto [at, is_new] = localities_.try_emplace(bdf);
  PciLocality& locality = at->second;
  if (!is_new) return locality;
  const std::string path = pci_path(bdf);
  locality.numa_node = read_optional<int>(root, path + "/numa_node", parse_numa_node, locality.problems);
  locality.cpus = read_optional<std::vector<int>>(root, path + "/local_cpulist", parse_cpu_list, locality.problems);
  if (const auto real = root.real_path(path)) {
    locality.switch_key = switch_key_of(*real);
    locality.pcie_root = pcie_root_of(*real);
  } else {
    note_problem(locality.problems, kMaxDeviceProblems, problem_with(path, real.error()));
  }
  return locality;
}

}  // namespace neuron::host
