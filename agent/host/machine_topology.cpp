#include "agent/host/machine_topology.h"

#include <algorithm>
#include <chrono>

#include "agent/base/child_process.h"
#include "agent/base/parse.h"
#include "agent/host/attributes.h"

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

// One optional attribute. An absent file is no problem, any other error is.
template <typename T>
std::optional<T> read_optional(const FsRoot& root, const std::string& path, Result<T> (*parse)(std::string_view),
                               PciLocality& locality) {
  const auto text = root.read_attribute(path);
  if (!text) {
    if (is_absent(text.error())) return std::nullopt;
    locality.unread = true;
    note_problem(locality.problems, kMaxDeviceProblems, problem_with(path, text.error()));
    return std::nullopt;
  }
  auto value = parse(*text);
  if (value) return *std::move(value);
  note_problem(locality.problems, kMaxDeviceProblems, problem_with(path, value.error()));
  return std::nullopt;
}

constexpr std::string_view kVersion = "neuron-topology/1";

tl::unexpected<Error> corrupt(std::string_view line) {
  return fail(ErrorCode::data_corrupt, "the helper answered \"" + printable(line) + '"');
}

Result<void> parse_line(std::string_view line, MachineTopology& machine) {
  const auto words = split(line, ' ');
  if (words.size() != 3) return corrupt(line);
  if (words[0] == "node") {
    const auto index = parse_int(words[1], 0, kMaxNumaNode);
    auto cpus = words[2] == "-" ? std::vector<int>() : parse_int_list(words[2], kMaxCpu);
    const bool ascends = machine.numa_nodes.empty() || (index && machine.numa_nodes.back().index < *index);
    if (!index || !cpus || !ascends) return corrupt(line);
    machine.numa_nodes.push_back({*index, *std::move(cpus)});
    return {};
  }
  const auto bdf = model::parse_bdf(words[1]);
  auto nodes = parse_int_list(words[2], kMaxNumaNode);
  if (words[0] != "function" || !bdf || !nodes || machine.numa_of.size() >= kMaxFunctions) return corrupt(line);
  machine.numa_of[*bdf] = *std::move(nodes);
  return {};
}

Result<MachineTopology> ask_helper(const FsRoot& root) {
  constexpr std::chrono::seconds kBudget{5};
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;
  TRY_ASSIGN(const std::string program, find_helper("libexec/neuron-node-agent/neuron-topology"));
  TRY_ASSIGN(const ChildOutcome answer, run_program({program, root.path()}, kBudget, kMaxBytes));
  if (answer.end == ChildOutcome::End::out_of_time) {
    return fail(ErrorCode::deadline_exceeded, "reading " + root.path() + " took longer than 5 s");
  }
  if (answer.end == ChildOutcome::End::cut) return fail(ErrorCode::data_corrupt, "the helper's answer is too long");
  if (answer.end == ChildOutcome::End::exited && answer.status == 0) return parse_topology(answer.output);
  const std::string complaint = complaint_of(answer);
  const std::string how =
      (answer.end == ChildOutcome::End::killed ? "signal " : "exit status ") + std::to_string(answer.status);
  return fail(ErrorCode::internal, !complaint.empty() ? complaint : "reading " + root.path() + " ended with " + how);
}

}  // namespace

std::string pci_path(const model::Bdf& bdf) {
  return std::string(kDevices) + '/' + model::to_string(bdf);
}

PciInventory::Change PciInventory::refresh(const FsRoot& root) {
  auto names = root.list(kDevices);
  list_problem_.reset();
  if (!names && !is_absent(names.error())) {
    list_problem_ = problem_with(std::string(kDevices), names.error());
    return Change::none;
  }
  std::vector<std::string> seen = names ? *std::move(names) : std::vector<std::string>();
  std::vector<model::Bdf> addresses;
  if (was_read_ && seen == names_) {
    for (const auto& [bdf, problem] : id_problems_) addresses.push_back(bdf);
    return identify(root, addresses);
  }
  was_read_ = true;
  names_ = std::move(seen);
  localities_.clear();
  for (const std::string& name : names_) {
    if (const auto bdf = model::parse_bdf(name)) addresses.push_back(*bdf);  // not the five-digit domains of VMD
  }
  std::erase_if(functions_, [&](const PciFunction& function) {
    return std::ranges::find(addresses, function.bdf) == addresses.end();
  });
  id_problems_.clear();
  static_cast<void>(identify(root, addresses));
  return Change::changed;
}

PciInventory::Change PciInventory::identify(const FsRoot& root, const std::vector<model::Bdf>& addresses) {
  const std::vector<PciFunction> before = functions_;
  for (const model::Bdf& bdf : addresses) {
    const std::string path = pci_path(bdf);
    const auto vendor = read_id(root, path + "/vendor");
    const bool is_foreign = vendor && *vendor != kAmazonVendor;
    const auto device = vendor && !is_foreign ? read_id(root, path + "/device") : vendor;
    if (!device) {
      id_problems_.insert_or_assign(bdf, problem_with(path + (vendor ? "/device" : "/vendor"), device.error()));
      continue;  // unchanged
    }
    id_problems_.erase(bdf);
    std::erase_if(functions_, [&bdf](const PciFunction& function) { return function.bdf == bdf; });
    if (!is_foreign) functions_.push_back({bdf, *device});
  }
  std::ranges::sort(functions_, {}, &PciFunction::bdf);
  return functions_ == before ? Change::none : Change::changed;
}

std::vector<model::Bdf> PciInventory::unidentified() const {
  std::vector<model::Bdf> addresses;
  for (const auto& [bdf, problem] : id_problems_) {
    if (find(bdf) == nullptr) addresses.push_back(bdf);
  }
  return addresses;
}

std::vector<model::ReadProblem> PciInventory::problems() const {
  std::vector<model::ReadProblem> all;
  if (list_problem_) note_problem(all, kMaxHostProblems, *list_problem_);
  for (const auto& [bdf, problem] : id_problems_) note_problem(all, kMaxHostProblems, problem);
  return all;
}

const PciFunction* PciInventory::find(const model::Bdf& bdf) const {
  const auto at = std::ranges::lower_bound(functions_, bdf, {}, &PciFunction::bdf);
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
  if (!is_new && !locality.unread) return locality;
  locality = {};
  const std::string path = pci_path(bdf);
  locality.numa_node = read_optional<int>(root, path + "/numa_node", parse_numa_node, locality);
  locality.cpus = read_optional<std::vector<int>>(root, path + "/local_cpulist", parse_cpu_list, locality);
  if (const auto real = root.real_path(path)) {
    locality.switch_key = switch_key_of(*real);
    locality.pcie_root = pcie_root_of(*real);
  } else {
    locality.unread = locality.unread || !is_absent(real.error());
    note_problem(locality.problems, kMaxDeviceProblems, problem_with(path, real.error()));
  }
  return locality;
}

std::string format_topology(const MachineTopology& machine) {
  std::string text = std::string(kVersion) + '\n';
  for (const model::NumaNode& node : machine.numa_nodes) {
    text += "node " + std::to_string(node.index) + ' ' + (node.cpus.empty() ? "-" : format_int_list(node.cpus)) + '\n';
  }
  for (const auto& [bdf, nodes] : machine.numa_of) {
    text += "function " + model::to_string(bdf) + ' ' + format_int_list(nodes) + '\n';
  }
  return text + "end\n";
}

Result<MachineTopology> parse_topology(std::string_view text) {
  MachineTopology machine;
  const auto lines = split(trim(text), '\n');
  if (lines.size() < 2 || lines.front() != kVersion || lines.back() != "end") {
    return fail(ErrorCode::data_corrupt, "the helper's answer is truncated or of another version");
  }
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) TRY(parse_line(lines[i], machine));
  return machine;
}

Result<MachineTopology> load_machine_topology(const FsRoot& root) {
  auto machine = ask_helper(root);
  if (!machine) return fail(std::move(machine).error().with_context("hwloc"));
  return machine;
}

}  // namespace neuron::host
