#include "tools/neuron-ls/node_reader.h"

#include <algorithm>
#include <array>
#include <map>

#include "agent/allocator/allocator.h"
#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/core/complete.h"
#include "agent/core/hardware.h"
#include "agent/core/logical_cores.h"
#include "agent/health/efa.h"
#include "agent/health/reasons.h"
#include "agent/host/proc_files.h"
#include "agent/host/scanner.h"
#include "agent/model/health.h"
#include "tools/pods/pods.h"

namespace neuron::ls {
namespace {

constexpr std::size_t kMaxCommandLine = 1 << 20;  // bytes; longer ones are left unresolved
constexpr std::size_t kMaxShown = 512;            // bytes, more than any column holds
constexpr int kMaxId = 1 << 20;                   // of a device or core in the kubelet's answer
constexpr std::chrono::seconds kKubeletBudget(2);

std::string command_line(const host::FsRoot& root, int pid) {
  auto text = root.read_file("proc/" + std::to_string(pid) + "/cmdline", kMaxCommandLine);
  if (!text) return "";
  std::ranges::replace(*text, '\0', ' ');
  return printable(trim(*text), kMaxShown);
}

void add_core(render::PodUse& use, int core, const render::NodeReport& report) {
  for (std::size_t i = 0; i < report.core_ids.size(); ++i) {
    const auto& ids = report.core_ids[i];
    if (!std::ranges::binary_search(ids, core)) continue;
    use.cores.insert(core);
    use.devices.insert(report.host.devices[i].index);
  }
}

void add_device(render::PodUse& use, int index, const render::NodeReport& report) {
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    if (report.host.devices[i].index != index) continue;
    use.devices.insert(index);
    if (i < report.core_ids.size()) use.cores.insert(report.core_ids[i].begin(), report.core_ids[i].end());
  }
}

void add_efa(render::PodUse& use, const std::string& name, const render::NodeReport& report) {
  for (const model::EfaInterface& efa : report.host.efas) {
    if (!name.empty() && efa.name == name) use.efas.insert(name);
  }
}

void add_id(render::PodUse& use, const std::string& resource, const std::string& id, const render::NodeReport& report) {
  if (resource == "vpc.amazonaws.com/efa") return add_efa(use, id, report);
  const auto number = parse_int(id, 0, kMaxId);
  if (!number) return;
  if (resource == "aws.amazon.com/neuroncore") return add_core(use, *number, report);
  if (resource == "aws.amazon.com/neuron" || resource == "aws.amazon.com/neurondevice") {
    add_device(use, *number, report);
  }
}

void add_claimed(render::PodUse& use, const std::string& device, const render::NodeReport& report) {
  const auto name = core::parse_pool_name(device);
  if (!name) return;
  const core::Hardware hardware = core::hardware_of(*name, report.host);
  for (const int index : hardware.device_indices()) use.devices.insert(index);
  for (const int id : core::core_ids_of(hardware, report.host)) use.cores.insert(id);
  use.efas.insert(hardware.efas.begin(), hardware.efas.end());
}

Refusals refusals_of(const host::FsRoot& root, const model::HostScan& scan) {
  const auto refused = [](const auto& result) {
    return !result && result.error().code == ErrorCode::permission_denied;
  };
  Refusals refusals;
  if (scan.devices.empty()) {
    refusals.class_directory = refused(root.list("sys/class/neuron_device"));
  } else {
    const auto answers = std::ranges::find_if(
        scan.devices, [](const model::NeuronDevice& device) { return device.presence == model::Presence::present; });
    if (answers == scan.devices.end()) return refusals;
    const std::string device = "sys/class/neuron_device/neuron" + std::to_string(answers->index);
    refusals.root_only_files = refused(root.read_attribute(device + "/core_count"));
  }
  return refusals;
}

void add_expectations(render::NodeReport& report) {
  const core::InstanceType* type = core::find_instance_type(report.host.instance_type);
  if (type == nullptr) return;
  report.expected_devices = type->device_count;
  report.expected_efas = type->efa_count;
  report.found_efas = static_cast<int>(report.host.efas.size());
  for (int index = 0; index < type->device_count; ++index) {
    if (model::find_device(report.host.devices, index) == nullptr) report.missing_devices.push_back(index);
  }
  if (report.missing_devices.empty()) return;
  report.missing_health =
      is_unread_list(report.host, model::ScanPart::Kind::devices)
          ? health::verdict_on_unread_list(report.host, "a device of the instance type", "sys/class/neuron_device")
          : health::verdict(health::reasons::kDeviceVanished,
                            "expected by the instance type, but not shown by the driver");
}

// Before the tables complete the scan.
std::set<int> empty_lists(const model::HostScan& scan) {
  std::set<int> indices;
  for (const model::NeuronDevice& device : scan.devices) {
    if (device.neighbours && device.neighbours->value.empty()) indices.insert(device.index);
  }
  return indices;
}

// With a device missing, lists that may not be read are as empty as those that may (docs/reference/driver.md).
void add_blanked_lists(render::NodeReport& report) {
  for (const model::NeuronDevice& device : report.host.devices) {
    const bool assumed = device.neighbours && device.neighbours->origin == model::Origin::assumed;
    if (assumed && !report.missing_devices.empty()) report.blanked_lists.insert(device.index);
  }
}

void add_places(render::NodeReport& report) {
  for (const model::NeuronDevice& device : report.host.devices) {
    report.core_ids.push_back(core::core_ids_of(device, report.host));
  }
  const allocator::NodeTopology topology = allocator::make_topology(report.host);
  for (const auto& device : topology.devices) report.near_efas.push_back(device.near_efas);
  report.switched = topology.switched;
  add_expectations(report);
  add_blanked_lists(report);
}

// The key of an interface behind the same switch or host bridge; "" where there is none. Where the host has few
// interfaces a device's group is guessed from its address; an interface behind another root bridge does not count.
std::string pci_key_of(std::size_t position, const allocator::NodeTopology& topology, const model::HostScan& host) {
  const int group = topology.devices[position].pci_group;
  const std::string& root = host.devices[position].pcie_root;
  for (std::size_t i = 0; group >= 0 && i < topology.efas.size(); ++i) {
    if (topology.efas[i].pci_group != group) continue;
    const std::string& other = host.efas[i].pcie_root;
    return root.empty() || other.empty() || root == other ? host.efas[i].switch_key : "";
  }
  return "";
}

// Values that only the picture shows.
void add_picture(render::NodeReport& report) {
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    auto& physical = report.physical_cores.emplace_back();
    for (std::size_t core = 0; core < report.core_ids[i].size(); ++core) {
      physical.push_back(core::physical_cores_of(report.host.devices[i], report.host, static_cast<int>(core)));
    }
  }
  const allocator::NodeTopology topology = allocator::make_topology(report.host);
  for (std::size_t i = 0; i < topology.devices.size(); ++i) {
    report.pci_keys.push_back(pci_key_of(i, topology, report.host));
  }
}

// Whether dev/ is a container's own. Every host has dev/kmsg and few containers do. For a captured root the sign is
// that at least half of the devices have no node.
bool has_own_dev(const host::FsRoot& root, const model::HostScan& host) {
  if (root.is_live()) return !root.exists("dev/kmsg");
  const auto without =
      std::ranges::count_if(host.devices, [](const model::NeuronDevice& device) { return !device.node_present; });
  return 2 * static_cast<std::size_t>(without) >= host.devices.size();
}

// Without any verbs device the advice depends on whether the module is loaded, which the health policy does not see.
void explain_verbs(const host::FsRoot& root, render::NodeReport& report) {
  for (model::EfaInterface& efa : report.host.efas) {
    if (efa.health.reason != model::reason::kIbUverbsNotLoaded) continue;
    efa.health = health::without_verbs(root.exists("sys/module/ib_uverbs"));
  }
}

// A node such as a GPU instance, where no Neuron device is missing.
bool has_interfaces_only(const model::HostScan& host) {
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  const bool no_neuron = host.devices.empty() && host.neuron_pci_functions == 0 && host.driver_version.empty() &&
                         (type == nullptr || type->device_count == 0);
  return no_neuron && !host.efas.empty();
}

// Makes scanners of one machine, each of which lives as long as a scan of it may hang.
monitor::WatchedScan::MakeScan scan_maker(const RootPtr& root) {
  struct Machine {
    RootPtr root;
    host::Scanner scanner;
    Machine(RootPtr opened, std::shared_ptr<host::LastSeen> last)
        : root(std::move(opened)),
          scanner(*root,
                  {.with_topology = false,
                   .with_processes = true,
                   .with_device_users = true,
                   .kernel_log = host::KernelLogUse::where_allowed},
                  std::move(last)) {}
  };
  return [root, last = std::make_shared<host::LastSeen>()] {
    return [machine = std::make_shared<Machine>(root, last)](const model::MayRead& may_read) {
      return machine->scanner.scan(may_read);
    };
  };
}

// The parts of the machine whose reads hang, and since when.
std::string warning_of(const model::HostScan& scan) {
  std::string text;
  for (const model::Unanswered& one : scan.unanswered) {
    text += (text.empty() ? "" : "; ") + to_string(one.part) + " has not returned since " + one.since;
  }
  return text.empty() ? text : text + "; its values are omitted";
}

// The PodResources socket: below --kubelet-dir, else below var/lib/kubelet of the root.
std::string pod_socket(const Options& options) {
  std::string directory = options.kubelet_dir;
  if (directory.empty())
    directory = (options.root.ends_with('/') ? options.root : options.root + '/') + "var/lib/kubelet";
  return directory + "/pod-resources/kubelet.sock";
}

bool shows_everything(const Options& options) {
  return options.format != Format::table && !options.json;
}

}  // namespace

std::map<int, std::string> read_process_commands(const host::FsRoot& root, const model::HostScan& scan) {
  std::map<int, std::string> commands;
  if (!host::proc_counts_like_the_driver(root)) return commands;
  for (const model::NeuronDevice& device : scan.devices) {
    if (!device.processes) continue;
    for (const model::Process& process : *device.processes) {
      if (process.pid <= 0 || commands.contains(process.pid)) continue;
      commands[process.pid] = command_line(root, process.pid);
    }
  }
  std::erase_if(commands, [](const auto& entry) { return entry.second.empty(); });
  return commands;
}

std::vector<render::PodUse> pod_uses(const std::vector<model::Allocation>& allocations,
                                     const render::NodeReport& report, std::string_view driver) {
  std::map<std::array<std::string, 4>, render::PodUse> by_container;
  for (const model::Allocation& one : allocations) {
    if (!one.claim.empty() && one.resource_name != driver) continue;
    render::PodUse& use = by_container[{one.pod_namespace, one.pod, one.container, one.claim}];
    use.pod_namespace = one.pod_namespace;
    use.pod = one.pod;
    use.container = one.container;
    use.claim = one.claim;
    for (const std::string& id : one.ids) {
      one.claim.empty() ? add_id(use, one.resource_name, id, report) : add_claimed(use, id, report);
    }
  }
  std::vector<render::PodUse> uses;
  for (auto& [name, use] : by_container) {
    if (!use.devices.empty() || !use.efas.empty()) uses.push_back(std::move(use));
  }
  return uses;
}

NodeReader::NodeReader(RootPtr root, const Options& options)
    : root_(std::move(root)), options_(options), scans_(workers_, scan_maker(root_)) {}

Reading NodeReader::read() {
  Reading reading;
  render::NodeReport& report = reading.report;
  const model::HostScan scan = scans_.scan();
  reading.warning = warning_of(scan);
  report.blanked_lists = empty_lists(scan);
  report.host = core::complete(scan);
  report.own_dev = has_own_dev(*root_, report.host);
  const bool interfaces_count = options_.efa || options_.format == Format::svg;
  const bool only_efas = interfaces_count && !options_.json && has_interfaces_only(report.host);
  if (!scan.unanswered.empty() && scan.devices.empty()) {
    reading.absence = Absence{reading.warning, "see the kernel log for the cause; try again later"};
  } else if (!only_efas) {
    reading.absence = explain_absence(report.host, options_.root, refusals_of(*root_, report.host));
  }
  if (options_.health || shows_everything(options_)) add_health(scan, report);
  add_places(report);
  if (options_.format == Format::svg) add_picture(report);
  report.commands = read_process_commands(*root_, report.host);
  if (options_.pods && !reading.absence) ask_kubelet(reading);
  return reading;
}

// A container sees the nodes of its own devices only, which says nothing about the health of the others: there the
// verdict is given as if each node were present, and node_present keeps its true value.
void NodeReader::add_health(model::HostScan scan, render::NodeReport& report) {
  std::set<int> with_node;
  for (model::NeuronDevice& device : scan.devices) {
    if (device.node_present) with_node.insert(device.index);
    device.node_present |= report.own_dev;
  }
  health::Assessment node = health::assess(std::move(scan), memory_, std::chrono::steady_clock::now());
  for (model::NeuronDevice& device : node.host.devices) device.node_present = with_node.contains(device.index);
  // Signals missing on all devices are part of the verdicts already.
  std::erase_if(node.host.problems,
                [](const auto& problem) { return problem.kind == model::ProblemKind::missing_signals; });
  report.host = std::move(node.host);
  explain_verbs(*root_, report);
}

void NodeReader::ask_kubelet(Reading& reading) const {
  const auto holdings = pods::query_pods(pod_socket(options_), kKubeletBudget);
  if (holdings) {
    reading.report.pods = pod_uses(*holdings, reading.report, options_.dra_driver_name);
  } else {
    if (!reading.warning.empty()) reading.warning += "; ";
    reading.warning +=
        "pods are unknown: " + holdings.error().message + " (--kubelet-dir sets the kubelet's directory)";
  }
}

}  // namespace neuron::ls
