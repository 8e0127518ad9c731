#include "agent/host/efa_sysfs.h"

#include "agent/base/parse.h"
#include "agent/host/attributes.h"
#include "agent/host/problems.h"

namespace neuron::host {
namespace {

constexpr std::string_view kRdmaClass = "sys/class/infiniband";
constexpr std::string_view kVerbsClass = "sys/class/infiniband_verbs";

std::string below(std::string_view folder, std::string_view name) {
  return std::string(folder) + '/' + std::string(name);
}

std::string last_component(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// A class folder that is not there is an unloaded module; anything else that fails is a problem.
std::vector<std::string> list_class(const FsRoot& root, std::string_view path, std::vector<std::string>& problems) {
  auto names = root.list(path);
  if (names) return *std::move(names);
  if (!is_absent(names.error())) note_problem(problems, kMaxHostProblems, names.error().message);
  return {};
}

// Drivers before r1.14 have all counters with the port (efa-topology.md §3.4).
void read_lost_commands(const FsRoot& root, model::EfaInterface& efa) {
  const std::string base = below(kRdmaClass, efa.name);
  std::string path = base + "/hw_counters/no_completion_cmds";
  auto text = root.read_attribute(path);
  if (!text && is_absent(text.error())) {
    path = base + "/ports/1/hw_counters/no_completion_cmds";
    text = root.read_attribute(path);
  }
  if (!text) {
    if (!is_absent(text.error())) note_problem(efa.problems, kMaxDeviceProblems, text.error().message);
    return;
  }
  const auto count = parse_counter(*text);
  if (count)
    efa.no_completion_cmds = *count;
  else
    note_problem(efa.problems, kMaxDeviceProblems, path + ": " + count.error().message);
}

}  // namespace

void EfaReader::forget() {
  joined_once_ = false;
}

std::map<model::Bdf, std::string> EfaReader::names_by_function(const FsRoot& root) {
  std::map<model::Bdf, std::string> names;
  for (const std::string& name : rdma_entries_) {
    if (!is_rdma_name(name)) {
      note_problem(join_problems_, kMaxHostProblems, below(kRdmaClass, printable(name, 40)) + ": not a device name");
      continue;
    }
    const auto function = root.real_path(below(below(kRdmaClass, name), "device"));
    if (!function) {
      // Software RDMA devices hang on no function; an unbound one may leave while we look.
      if (!is_absent(function.error())) note_problem(join_problems_, kMaxHostProblems, function.error().message);
      continue;
    }
    if (const auto bdf = model::parse_bdf(last_component(*function))) names.emplace(*bdf, name);
  }
  return names;
}

std::map<std::string, std::string> EfaReader::verbs_by_name(const FsRoot& root) {
  std::map<std::string, std::string> verbs;
  for (const std::string& entry : verbs_entries_) {
    if (!uverbs_index_of(entry)) continue;  // abi_version
    const auto name = root.read_attribute(below(below(kVerbsClass, entry), "ibdev"));
    if (!name) {
      note_problem(join_problems_, kMaxHostProblems, name.error().message);
      continue;
    }
    const auto [at, is_new] = verbs.emplace(*name, entry);
    if (is_new) continue;
    note_problem(
        join_problems_, kMaxHostProblems,
        below(below(kVerbsClass, entry), "ibdev") + ": names " + printable(*name, 64) + " as " + at->second + " does");
  }
  return verbs;
}

void EfaReader::join(const FsRoot& root, PciInventory& pci) {
  interfaces_.clear();
  join_problems_.clear();
  const auto names = names_by_function(root);
  const auto verbs = verbs_by_name(root);
  for (const PciFunction& function : pci.amazon_functions()) {
    if (!is_efa(function)) continue;
    Joined joined;
    const std::string path = pci_path(function.bdf);
    joined.driver_path = path + "/driver";
    joined.p2p_path = path + "/p2p";
    model::EfaInterface& efa = joined.fixed;
    efa.bdf = function.bdf;
    efa.pci_device_id = function.device_id;
    const PciLocality& locality = pci.locality(root, function.bdf);
    efa.numa_node = locality.numa_node;
    efa.cpus = locality.cpus;
    efa.switch_key = locality.switch_key;
    efa.problems = locality.problems;
    if (const auto name = names.find(function.bdf); name != names.end()) {
      efa.name = name->second;
    } else if (const auto entries = root.list(path + "/infiniband"); entries && !entries->empty()) {
      // A capture may hold the functions and lack the links of the class.
      if (is_rdma_name(entries->front())) efa.name = entries->front();
    }
    if (const auto node = verbs.find(efa.name); !efa.name.empty() && node != verbs.end()) {
      efa.uverbs = node->second;
      joined.node_path = "dev/infiniband/" + node->second;
    }
    interfaces_.push_back(std::move(joined));
  }
}

model::EfaInterface EfaReader::read_one(const FsRoot& root, Joined& joined) {
  model::EfaInterface efa = joined.fixed;
  const auto driver = root.read_link(joined.driver_path);
  efa.driver_bound = driver && last_component(*driver) == "efa";
  if (!driver && !is_absent(driver.error())) note_problem(efa.problems, kMaxDeviceProblems, driver.error().message);
  efa.node_present = !joined.node_path.empty() && root.exists(joined.node_path);
  if (efa.driver_bound && !efa.name.empty()) read_lost_commands(root, efa);
  if (joined.p2p == P2p::absent) return efa;
  auto p2p = root.read_attribute(joined.p2p_path);
  if (p2p) {
    efa.p2p = printable(*p2p, 64);
  } else if (joined.p2p == P2p::unprobed && is_absent(p2p.error())) {
    joined.p2p = P2p::absent;
    return efa;
  } else {
    note_problem(efa.problems, kMaxDeviceProblems, p2p.error().message);
  }
  joined.p2p = P2p::present;
  return efa;
}

std::vector<model::EfaInterface> EfaReader::read(const FsRoot& root, PciInventory& pci,
                                                 std::vector<std::string>& host_problems) {
  auto rdma = list_class(root, kRdmaClass, host_problems);
  auto verbs = list_class(root, kVerbsClass, host_problems);
  if (!joined_once_ || rdma != rdma_entries_ || verbs != verbs_entries_) {
    rdma_entries_ = std::move(rdma);
    verbs_entries_ = std::move(verbs);
    join(root, pci);
    joined_once_ = true;
  }
  for (const std::string& line : join_problems_) note_problem(host_problems, kMaxHostProblems, line);
  std::vector<model::EfaInterface> efas;
  efas.reserve(interfaces_.size());
  for (Joined& joined : interfaces_) efas.push_back(read_one(root, joined));
  return efas;
}

}  // namespace neuron::host
