#include "agent/host/scanner.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "agent/base/parse.h"
#include "agent/host/attributes.h"

namespace neuron::host {

using model::DriverLayout;
using model::HostScan;
using model::NeuronDevice;
using model::Origin;
using model::Presence;
using model::ProblemKind;
using model::ReadProblem;
using model::ScanPart;

namespace {

constexpr int kTopologyTries = 4;  // the helper may be late on a busy machine
constexpr std::string_view kClass = "sys/class/neuron_device";

}  // namespace

HostScan Scanner::scan(const model::MayRead& may_read) {
  HostScan scan;
  unread_.clear();
  LastTexts texts = last_seen_->texts();
  if (may_read({ScanPart::Kind::host})) {
    read_host_texts(root_, texts, scan);
    read_driver_settings(root_, texts, scan);
  }
  refresh_pci(scan, may_read);
  if (may_read({ScanPart::Kind::devices})) {
    for (const int index : refresh_inventory(scan)) scan.devices.push_back(read_device(index, may_read, scan));
    const bool has_modes = std::ranges::find(class_entries_, "ultraserver_mode") != class_entries_.end();
    if (has_modes) {
      scan.ultraserver = read_ultraserver(root_, texts, scan.problems, scan.ultraserver_is_unread);
    }
    if (!has_modes && !is_unread({ScanPart::Kind::devices})) forget_ultraserver(texts);
  }
  const bool wants_users = options_.with_processes && options_.with_device_users;
  if (wants_users && may_read({ScanPart::Kind::host})) add_device_users(scan);
  check_neighbours(scan.devices);
  find_layout(scan);
  scan.efas = efa_.read(root_, pci_, may_read, scan.problems);
  unread_.insert(unread_.end(), efa_.unread().begin(), efa_.unread().end());
  const bool is_wanted = may_read({ScanPart::Kind::host});  // false for a scan given up for a hung read
  if (is_wanted) {
    read_lnc(root_, texts, scan);
    if (options_.kernel_log != KernelLogUse::none) read_kernel_log(scan);
  }
  last_seen_->fill(scan, unread_);
  if (!is_wanted) return scan;
  LastSeen::Unread kept = unread_;
  for (const auto kind : {ScanPart::Kind::devices, ScanPart::Kind::pci, ScanPart::Kind::efa_classes}) {
    if (!may_read({kind})) kept.push_back({kind});
  }
  last_seen_->take(scan, kept, std::move(texts));
  return scan;
}

void Scanner::refresh_pci(HostScan& scan, const model::MayRead& may_read) {
  if (may_read({ScanPart::Kind::pci}) && pci_.refresh(root_) == PciInventory::Change::changed) {
    efa_.forget();
    topology_is_due_ = true;
    topology_failures_ = 0;
  }
  if (topology_is_due_ && may_read({ScanPart::Kind::topology})) {
    refresh_topology();
    topology_is_due_ = topology_problem_ && ++topology_failures_ < kTopologyTries;
  }
  if (pci_.list_failed()) unread_.push_back({ScanPart::Kind::pci});
  for (const model::Bdf& bdf : pci_.unidentified()) unread_.push_back({ScanPart::Kind::efa, 0, bdf});
  for (const ReadProblem& problem : pci_.problems()) note_problem(scan.problems, kMaxHostProblems, problem);
  if (topology_problem_) note_problem(scan.problems, kMaxHostProblems, *topology_problem_);
  if (topology_) scan.numa_nodes = topology_->numa_nodes;
  const auto is_neuron = [](const PciFunction& f) { return model::family_of_pci_id(f.device_id).has_value(); };
  scan.neuron_pci_functions = static_cast<int>(std::ranges::count_if(pci_.amazon_functions(), is_neuron));
}

std::set<int> Scanner::find_renewed() {
  std::set<int> renewed;
  const bool is_first = entries_seen_.empty();
  for (const auto& [index, known] : devices_) {
    if (!known.reader) continue;
    const auto [seen, is_new] = entries_seen_.try_emplace(index, known.reader->id());
    if (is_first || (!is_new && seen->second == known.reader->id())) continue;
    renewed.insert(index);
    seen->second = known.reader->id();
  }
  return renewed;
}

Result<void> Scanner::take_kernel_records(const HostScan& scan) {
  using Lookback = health::KernelErrors::Lookback;
  TRY_ASSIGN(const KernelLogReader::Part part, kernel_log_.open());
  if (scan.devices.empty()) return {};
  if (part == KernelLogReader::Part::everything) kernel_errors_ = {};
  kernel_errors_.begin(scan.devices, find_renewed(),
                       part == KernelLogReader::Part::news ? Lookback::no : Lookback::yes);
  const auto read = kernel_log_.read([this](const health::KernelRecord& record) { kernel_errors_.take(record); });
  kernel_errors_.end();
  return read;
}

void Scanner::read_kernel_log(HostScan& scan) {
  static constexpr std::string_view kPath = "dev/kmsg";
  model::KernelLog& log = scan.kernel_log;
  const auto taken = take_kernel_records(scan);
  log.state = model::KernelLogState::reading;
  if (!taken) {
    const bool denied = taken.error().code == ErrorCode::permission_denied;
    log.state = denied ? model::KernelLogState::denied : model::KernelLogState::broken;
    log.problem = problem_with(std::string(kPath), taken.error());
    if (denied) log.problem->detail += "; reading the kernel log takes the capability CAP_SYSLOG";
  }
  log.errors = kernel_errors_.errors();
  log.ignored_lines = kernel_errors_.ignored_lines();
  log.lost_records = kernel_log_.lost_records();
  if (options_.kernel_log != KernelLogUse::wanted) return;
  if (log.problem) note_problem(scan.problems, kMaxHostProblems, *log.problem);
  if (log.lost_records == 0) return;
  note_problem(scan.problems, kMaxHostProblems,
               {ProblemKind::file, std::string(kPath),
                "records were overwritten before they were read; their content is unknown"});
}

void Scanner::refresh_topology() {
  topology_.reset();
  topology_problem_.reset();
  if (!options_.with_topology) return;
  if (auto machine = load_machine_topology(root_)) {
    topology_ = *std::move(machine);
  } else {
    topology_problem_ = problem_with("hwloc", machine.error());
  }
}

std::vector<int> Scanner::refresh_inventory(HostScan& scan) {
  auto entries = root_.list(kClass);
  const auto complain = [&](ReadProblem problem) { note_problem(scan.problems, kMaxHostProblems, std::move(problem)); };
  std::vector<std::string> names;
  if (entries) {
    names = *entries;
  } else if (!is_absent(entries.error())) {
    complain(problem_with(std::string(kClass), entries.error()));
    unread_.push_back({ScanPart::Kind::devices});
    names = class_entries_;
  }
  if (names != class_entries_ || scan.driver_version != driver_version_) {
    devices_.clear();
    class_entries_ = std::move(names);
    driver_version_ = scan.driver_version;
  }
  std::vector<int> indices;
  for (const std::string& name : class_entries_) {
    if (const auto index = device_index_of(name)) indices.push_back(*index);
  }
  std::ranges::sort(indices);
  if (indices.size() > kMaxDevices) {
    indices.resize(kMaxDevices);
    complain({ProblemKind::file, std::string(kClass), "more than 64 devices; the rest is ignored"});
  }
  if (entries && indices.empty()) {
    complain({ProblemKind::no_device, std::string(kClass), "the driver is loaded but shows no device"});
  }
  return indices;
}

NeuronDevice Scanner::read_sysfs(int index, KnownDevice& known, std::optional<Error>& shortage) {
  const auto id = root_.identify(device_path(index));
  const bool is_unknown = !id && is_shortage(id.error());
  if (known.reader && !is_unknown && (!id || known.reader->id() != *id)) known = {};
  if (!known.reader) {
    auto reader = NeuronDeviceReader::open(root_, index, driver_version_);
    if (!reader) {
      if (is_shortage(reader.error())) shortage = reader.error();
      NeuronDevice device;
      device.index = index;
      note_problem(device.problems, kMaxDeviceProblems, problem_with(device_path(index), reader.error()));
      return device;
    }
    known.reader = *std::move(reader);
  }
  NeuronDevice device = known.reader->read();
  if (known.reader->shortage()) shortage = known.reader->shortage();
  return device;
}

// dev/neuron<N>: only "no such file" is evidence that it is missing.
void Scanner::find_node(NeuronDevice& device, std::optional<Error>& shortage) const {
  const std::string path = "dev/neuron" + std::to_string(device.index);
  const auto node = root_.identify(path);
  device.node_present = node || node.error().code != ErrorCode::not_found;
  if (node || !device.node_present) return;
  if (is_shortage(node.error())) shortage = node.error();
  note_problem(device.problems, kMaxDeviceProblems, problem_with(path, node.error()));
}

NeuronDevice Scanner::read_device(int index, const model::MayRead& may_read, HostScan& scan) {
  if (!may_read({ScanPart::Kind::device, index})) {
    NeuronDevice device;
    device.index = index;
    device.presence = Presence::not_answering;
    device.family = pci_.common_family();
    std::optional<Error> ignored;
    find_node(device, ignored);  // /dev is no read inside the driver
    return device;
  }
  KnownDevice& known = devices_[index];
  std::optional<Error> shortage;
  NeuronDevice device = read_sysfs(index, known, shortage);
  if (known.serial && device.serial && *known.serial != *device.serial) {
    known = {};  // another device under the same number
    device = read_sysfs(index, known, shortage);
  }
  if (device.serial) known.serial = device.serial;
  if (known.reader && may_read({ScanPart::Kind::memory, index})) {
    known.reader->read_shown(device);
    if (known.reader->shortage()) shortage = known.reader->shortage();
  }
  find_node(device, shortage);
  if (shortage) note_shortage(index, *shortage, scan);
  if (may_read({ScanPart::Kind::driver, index})) {
    ask(index, known, device);
  } else {
    device.presence = Presence::not_answering;
  }
  locate(device);
  return device;
}

// One line for all devices, since the affected ones change from scan to scan.
void Scanner::note_shortage(int index, const Error& shortage, HostScan& scan) {
  const bool is_first = std::ranges::find(unread_, ScanPart::Kind::device, &ScanPart::kind) == unread_.end();
  unread_.push_back({ScanPart::Kind::device, index});
  if (!is_first) return;
  note_problem(scan.problems, kMaxHostProblems,
               {ProblemKind::file, std::string(kClass) + "/neuron*",
                "not read: " + std::generic_category().message(shortage.os_errno) + "; the last values are kept"});
}

void Scanner::ask(int index, KnownDevice& known, NeuronDevice& device) const {
  // Recorded processes may change at any time; a live driver is asked again only until it has answered.
  const bool again = root_.is_live() ? known.answers && !known.answers->bdf : options_.with_processes;
  if (!known.answers || again) known.answers = query_driver(root_, index);
  const DriverAnswers& answers = *known.answers;
  if (answers.bdf) device.bdf = {*answers.bdf, Origin::live};
  device.logical_to_physical = answers.logical_to_physical;
  if (options_.with_processes) device.processes = answers.processes;
  for (const ReadProblem& problem : answers.problems) note_problem(device.problems, kMaxDeviceProblems, problem);
}

void Scanner::search_users() {
  constexpr int kPause = 200;  // times the duration of a search
  const SteadyTime begin = std::chrono::steady_clock::now();
  if (root_.is_live() && begin < next_search_) return;
  auto users = find_device_users(root_);
  // Missing rights are normal; any other reason is a problem of the host.
  const auto expected = {ErrorCode::permission_denied, ErrorCode::not_found, ErrorCode::failed_precondition};
  if (users) {
    users_ = *std::move(users);
  } else if (std::ranges::find(expected, users.error().code) == expected.end()) {
    users_ = DeviceUsers{{}, "users of the devices are unknown: " + users.error().message};
  } else {
    users_.reset();
  }
  const SteadyTime end = std::chrono::steady_clock::now();
  next_search_ = end + kPause * (end - begin);
}

void Scanner::add_device_users(HostScan& scan) {
  const auto is_silent = [](const NeuronDevice& device) { return !device.processes; };
  if (std::ranges::none_of(scan.devices, is_silent)) return;
  search_users();
  if (!users_) return;
  for (NeuronDevice& device : scan.devices) {
    if (device.processes) continue;
    std::vector<model::Process> processes;
    for (const DeviceUser& user : users_->users) {
      if (user.device == device.index) processes.emplace_back().pid = user.pid;
    }
    // That no process uses it is known only when all were examined.
    if (!processes.empty() || users_->gap.empty()) device.processes = std::move(processes);
  }
  if (!users_->gap.empty()) note_problem(scan.problems, kMaxHostProblems, {ProblemKind::file, "proc", users_->gap});
}

// Facts of the PCI function behind a device, once the driver has named it.
void Scanner::locate(NeuronDevice& device) {
  const PciFunction* function = device.bdf ? pci_.find(device.bdf->value) : nullptr;
  if (device.bdf && function == nullptr && pci_.was_read()) {
    note_problem(
        device.problems, kMaxDeviceProblems,
        {ProblemKind::file, pci_path(device.bdf->value), "the driver names this function, but it is not on PCI"});
  }
  if (!device.family) device.family = function ? model::family_of_pci_id(function->device_id) : pci_.common_family();
  if (function == nullptr) return;
  const PciLocality& locality = pci_.locality(root_, function->bdf);
  if (locality.numa_node) device.numa_node = {*locality.numa_node, Origin::live};
  if (locality.cpus) device.cpus = {*locality.cpus, Origin::live};
  device.pcie_root = locality.pcie_root;
  for (const ReadProblem& problem : locality.problems) note_problem(device.problems, kMaxDeviceProblems, problem);
  if (device.numa_node || !topology_) return;
  const auto nodes = topology_->numa_of.find(function->bdf);
  if (nodes != topology_->numa_of.end() && nodes->second.size() == 1) {
    device.numa_node = {nodes->second.front(), Origin::live};
  }
}

void Scanner::check_neighbours(std::vector<NeuronDevice>& devices) {
  std::set<int> present;
  for (const NeuronDevice& device : devices) present.insert(device.index);
  for (NeuronDevice& device : devices) {
    if (!device.neighbours) continue;
    std::set<int> absent;
    for (const int neighbour : device.neighbours->value) {
      if (!present.contains(neighbour)) absent.insert(neighbour);
    }
    if (absent.empty()) continue;
    note_problem(device.problems, kMaxDeviceProblems,
                 {ProblemKind::absent_neighbours, device_path(device.index) + "/connected_devices",
                  format_int_list({absent.begin(), absent.end()})});
  }
}

void Scanner::find_layout(HostScan& scan) {
  const auto reader_of = [&](const NeuronDevice& device) -> const NeuronDeviceReader* {
    const auto known = devices_.find(device.index);
    return known != devices_.end() && known->second.reader ? &*known->second.reader : nullptr;
  };
  const auto was_left_out = [&](const NeuronDevice& device) {
    const bool is_open = reader_of(device) != nullptr;
    return device.presence != Presence::present || (!is_open && is_unread({ScanPart::Kind::device, device.index}));
  };
  if (std::ranges::all_of(scan.devices, was_left_out)) return;  // DriverLayout::none
  scan.layout = DriverLayout::unknown;
  std::vector<std::optional<DriverLayout>> layouts;  // nullopt: left out, or its folder cannot be opened
  for (const NeuronDevice& device : scan.devices) {
    const NeuronDeviceReader* reader = reader_of(device);
    layouts.push_back(reader != nullptr ? std::optional(reader->layout()) : std::nullopt);
    const DriverLayout layout = layouts.back().value_or(DriverLayout::unknown);
    if (layout == DriverLayout::unknown) continue;
    if (scan.layout == DriverLayout::unknown || layout > scan.layout) scan.layout = layout;
  }
  if (scan.layout == DriverLayout::unknown) {
    const std::string version = scan.driver_version.empty() ? "of unknown version" : scan.driver_version;
    note_problem(scan.problems, kMaxHostProblems,
                 {ProblemKind::unknown_layout, std::string(kClass),
                  "driver " + version + " has a layout unknown to this program; counters and health are unknown"});
    return;
  }
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (layouts[i] != DriverLayout::unknown) continue;
    note_problem(
        scan.devices[i].problems, kMaxDeviceProblems,
        {ProblemKind::file, device_path(scan.devices[i].index), "has none of the files that other devices have"});
  }
}

}  // namespace neuron::host
