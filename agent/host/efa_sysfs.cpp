#include "agent/host/efa_sysfs.h"

#include <algorithm>
#include <cerrno>

#include "agent/base/parse.h"
#include "agent/host/attributes.h"

namespace neuron::host {
namespace {

using model::ProblemKind;
using model::ScanPart;

constexpr std::string_view kRdmaClass = "sys/class/infiniband";
constexpr std::string_view kVerbsClass = "sys/class/infiniband_verbs";

std::string below(std::string_view folder, std::string_view name) {
  return std::string(folder) + '/' + std::string(name);
}

std::string last_component(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

enum class Listing { same, changed, failed };

// Reads a class folder into `names`. Without it (its module is not loaded) they are empty; after another error they
// stay.
Listing list_class(const FsRoot& root, std::string_view path, std::vector<std::string>& names,
                   std::vector<model::ReadProblem>& problems) {
  auto read = root.list(path);
  if (!read && !is_absent(read.error())) {
    note_problem(problems, kMaxHostProblems, problem_with(std::string(path), read.error()));
    return Listing::failed;
  }
  auto before = std::exchange(names, std::move(read).value_or(std::vector<std::string>()));
  return before == names ? Listing::same : Listing::changed;
}

// Reading the device's own counters sends no command to it. Those of the port are admin commands, which wait for up to
// 30 s each while the device does not answer and fail with ENODEV once the queue is closed; only drivers before r1.14,
// which count all with the port, are read there (docs/reference/efa.md#counters).
void read_lost_commands(const FsRoot& root, model::EfaInterface& efa) {
  const std::string base = below(kRdmaClass, efa.name);
  std::string path = base + "/hw_counters/no_completion_cmds";
  auto text = root.read_attribute(path);
  if (!text && is_absent(text.error())) {
    path = base + "/ports/1/hw_counters/no_completion_cmds";
    text = root.read_attribute(path);
    efa.admin_queue_closed = !text && text.error().os_errno == ENODEV;
  }
  const auto count = text.and_then(parse_counter);
  if (count) efa.no_completion_cmds = *count;
  if (count || is_absent(count.error())) return;
  note_problem(efa.problems, kMaxDeviceProblems, problem_with(path, count.error()));
}

}  // namespace

// The next read repeats the join.
void EfaReader::note_failed_join(const std::string& path, const Error& error) {
  is_joined_ = false;
  note_problem(join_problems_, kMaxHostProblems, problem_with(path, error));
  note_unread({ScanPart::Kind::efa_classes});
}

void EfaReader::note_unread(const ScanPart& part) {
  if (std::ranges::find(unread_, part) == unread_.end()) unread_.push_back(part);
}

std::map<model::Bdf, std::string> EfaReader::names_by_function(const FsRoot& root) {
  std::map<model::Bdf, std::string> names;
  for (const std::string& name : rdma_entries_) {
    if (!is_rdma_name(name)) {
      note_problem(join_problems_, kMaxHostProblems,
                   {ProblemKind::file, below(kRdmaClass, printable(name, 40)), "not a device name"});
      continue;
    }
    const std::string path = below(below(kRdmaClass, name), "device");
    const auto function = root.real_path(path);
    if (!function) {
      // Software RDMA devices have no function; an unbound device may leave during the read.
      if (!is_absent(function.error())) note_failed_join(path, function.error());
      continue;
    }
    if (const auto bdf = model::parse_bdf(last_component(*function))) names.emplace(*bdf, name);
  }
  return names;
}

std::map<std::string, std::string> EfaReader::verbs_by_name(const FsRoot& root, const model::MayRead& may_read) {
  std::map<std::string, std::string> verbs;
  for (const std::string& entry : verbs_entries_) {
    const auto index = uverbs_index_of(entry);
    if (!index) continue;  // abi_version
    if (!may_read({ScanPart::Kind::verbs, *index})) {
      is_joined_ = false;
      continue;
    }
    const std::string path = below(below(kVerbsClass, entry), "ibdev");
    const auto name = root.read_attribute(path);
    if (!name) {
      note_failed_join(path, name.error());
      continue;
    }
    const auto [at, is_new] = verbs.emplace(*name, entry);
    if (is_new) continue;
    note_problem(join_problems_, kMaxHostProblems,
                 {ProblemKind::file, path, "names " + printable(*name, 64) + " as " + at->second + " does"});
  }
  return verbs;
}

void EfaReader::join(const FsRoot& root, PciInventory& pci, const model::MayRead& may_read) {
  interfaces_.clear();
  join_problems_.clear();
  is_joined_ = true;
  const auto names = names_by_function(root);
  const auto verbs = verbs_by_name(root, may_read);
  for (const PciFunction& function : pci.amazon_functions()) {
    if (!is_efa(function)) continue;
    Joined& joined = interfaces_.emplace_back();
    joined.fixed.bdf = function.bdf;
    joined.fixed.pci_device_id = function.device_id;
    if (const auto name = names.find(function.bdf); name != names.end()) joined.fixed.name = name->second;
    const bool may = may_read({ScanPart::Kind::efa, 0, function.bdf});
    if (may) join_one(root, pci, verbs, joined);
    if (!may || pci.locality(root, function.bdf).unread) is_joined_ = false;
  }
}

void EfaReader::join_one(const FsRoot& root, PciInventory& pci, const std::map<std::string, std::string>& verbs,
                         Joined& joined) {
  model::EfaInterface& efa = joined.fixed;
  const std::string path = pci_path(efa.bdf);
  joined.driver_path = path + "/driver";
  joined.p2p_path = path + "/p2p";
  const PciLocality& locality = pci.locality(root, efa.bdf);
  efa.numa_node = locality.numa_node;
  efa.cpus = locality.cpus;
  efa.switch_key = locality.switch_key;
  efa.pcie_root = locality.pcie_root;
  efa.problems = locality.problems;
  if (efa.name.empty()) {
    // A capture may hold the functions and lack the links of the class.
    const auto entries = root.list(path + "/infiniband");
    if (entries && !entries->empty() && is_rdma_name(entries->front())) efa.name = entries->front();
  }
  if (const auto node = verbs.find(efa.name); !efa.name.empty() && node != verbs.end()) {
    efa.uverbs = node->second;
    joined.node_path = "dev/infiniband/" + node->second;
  }
}

model::EfaInterface EfaReader::read_one(const FsRoot& root, Joined& joined) {
  model::EfaInterface efa = joined.fixed;
  const auto failed = [&](const std::string& path, const Error& error) {
    if (is_shortage(error)) note_unread({ScanPart::Kind::efa, 0, efa.bdf});
    note_problem(efa.problems, kMaxDeviceProblems, problem_with(path, error));
  };
  const auto driver = root.read_link(joined.driver_path);
  efa.driver_bound = driver && last_component(*driver) == "efa";
  if (!driver && !is_absent(driver.error())) {
    efa.driver_bound = !efa.name.empty();  // only the driver gives it its RDMA device
    failed(joined.driver_path, driver.error());
  }
  if (!joined.node_path.empty()) {
    const auto node = root.identify(joined.node_path);
    efa.node_present = node || node.error().code != ErrorCode::not_found;
    if (!node && efa.node_present) failed(joined.node_path, node.error());
  }
  if (efa.driver_bound && !efa.name.empty()) read_lost_commands(root, efa);
  if (joined.p2p == P2p::absent) return efa;
  auto p2p = root.read_attribute(joined.p2p_path);
  if (p2p) {
    efa.p2p = printable(*p2p, 64);
  } else if (joined.p2p == P2p::unprobed && is_absent(p2p.error())) {
    joined.p2p = P2p::absent;
    return efa;
  } else {
    failed(joined.p2p_path, p2p.error());
    if (is_shortage(p2p.error())) return efa;  // there may be no such file
  }
  joined.p2p = P2p::present;
  return efa;
}

std::vector<model::EfaInterface> EfaReader::read(const FsRoot& root, PciInventory& pci, const model::MayRead& may_read,
                                                 std::vector<model::ReadProblem>& host_problems) {
  unread_.clear();
  if (!may_read({ScanPart::Kind::efa_classes})) return {};
  const auto lists = {list_class(root, kRdmaClass, rdma_entries_, host_problems),
                      list_class(root, kVerbsClass, verbs_entries_, host_problems)};
  if (std::ranges::count(lists, Listing::failed) > 0) note_unread({ScanPart::Kind::efa_classes});
  if (!is_joined_ || std::ranges::count(lists, Listing::changed) > 0) join(root, pci, may_read);
  for (const auto& problem : join_problems_) note_problem(host_problems, kMaxHostProblems, problem);
  std::vector<model::EfaInterface> efas;
  efas.reserve(interfaces_.size());
  for (Joined& joined : interfaces_) {
    const bool is_known = !joined.driver_path.empty();  // not left out of the join
    if (is_known && may_read({ScanPart::Kind::efa, 0, joined.fixed.bdf})) {
      efas.push_back(read_one(root, joined));
    } else {
      efas.push_back(joined.fixed);
      efas.back().presence = model::Presence::not_answering;
    }
  }
  return efas;
}

}  // namespace neuron::host
