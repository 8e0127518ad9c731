#include "tools/neuron-ls/node_reader.h"

#include <algorithm>

#include "agent/allocator/allocator.h"
#include "agent/core/catalogue.h"
#include "agent/core/complete.h"
#include "agent/core/logical_cores.h"
#include "agent/health/reasons.h"
#include "agent/host/scanner.h"
#include "agent/model/reasons.h"
#include "tools/neuron-ls/pod_uses.h"
#include "tools/neuron-ls/process_commands.h"
#include "tools/pods/pod_query.h"

namespace neuron::ls {
namespace {

constexpr std::chrono::seconds kKubeletBudget(2);

Refusals refusals_of(const host::FsRoot& root, const model::HostScan& scan) {
  const auto refused = [](const auto& result) {
    return !result && result.error().code == ErrorCode::permission_denied;
  };
  Refusals refusals;
  if (scan.devices.empty()) {
    refusals.class_directory = refused(root.list("sys/class/neuron_device"));
  } else {
    const auto answers = std::find_if(scan.devices.begin(), scan.devices.end(), [](const model::NeuronDevice& device) {
      return device.presence == model::Presence::present;
    });
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
    const auto has_index = [&](const model::NeuronDevice& device) { return device.index == index; };
    if (std::none_of(report.host.devices.begin(), report.host.devices.end(), has_index)) {
      report.missing_devices.push_back(index);
    }
  }
  if (report.missing_devices.empty()) return;
  report.missing_health =
      health::verdict(health::reasons::kDeviceVanished, "the instance type has it, the driver does not show it");
}

// Before the tables complete the scan.
std::set<int> empty_lists(const model::HostScan& scan) {
  std::set<int> indices;
  for (const model::NeuronDevice& device : scan.devices) {
    if (device.neighbours && device.neighbours->value.empty()) indices.insert(device.index);
  }
  return indices;
}

// With a device missing, lists that may not be read are as empty as those that may.
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

// That of an interface behind the same switch or host bridge; "" where there is none. The group of a device is a guess
// from its address where the host has few interfaces; its own root bridge knows better.
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

// What only the picture shows.
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

// Whether dev/ is a container's own. Every host has dev/kmsg and few containers do; elsewhere than on this machine that
// most devices have no node must do.
bool has_own_dev(const host::FsRoot& root, const model::HostScan& host) {
  if (root.is_live()) return !root.exists("dev/kmsg");
  const auto without = std::count_if(host.devices.begin(), host.devices.end(),
                                     [](const model::NeuronDevice& device) { return !device.node_present; });
  return 2 * static_cast<std::size_t>(without) >= host.devices.size();
}

// Without any verbs device the module decides what to do, which the policy cannot know.
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
    return [machine = std::make_shared<Machine>(root, last)](const host::MayRead& may_read) {
      return machine->scanner.scan(may_read);
    };
  };
}

// What hangs, and since when.
std::string warning_of(const model::HostScan& scan) {
  std::string text;
  for (const model::Unanswered& one : scan.unanswered) {
    text += (text.empty() ? "" : "; ") + to_string(one.part) + " has not come back since " + one.since;
  }
  return text.empty() ? text : text + "; its values are left out";
}

bool shows_everything(const Options& options) {
  return options.format != Format::table && !options.json;
}

}  // namespace

std::string pod_socket(const Options& options) {
  std::string directory = options.kubelet_dir;
  if (directory.empty())
    directory = (options.root.ends_with('/') ? options.root : options.root + '/') + "var/lib/kubelet";
  return directory + "/pod-resources/kubelet.sock";
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
    reading.absence = Absence{reading.warning, "the kernel log may say why; try again later"};
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

// A container sees the nodes of its own devices only. That says nothing about the others' health, so that there the
// verdict is given as if each node were there; whether it is stands beside it.
void NodeReader::add_health(model::HostScan scan, render::NodeReport& report) {
  std::set<int> with_node;
  for (model::NeuronDevice& device : scan.devices) {
    if (device.node_present) with_node.insert(device.index);
    device.node_present |= report.own_dev;
  }
  health::Assessment node = health::assess(std::move(scan), memory_, std::chrono::steady_clock::now());
  for (model::NeuronDevice& device : node.host.devices) device.node_present = with_node.contains(device.index);
  // What no device of a chip shows is told by the verdicts.
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
        "pods are unknown: " + holdings.error().message + " (--kubelet-dir names the kubelet's directory)";
  }
}

}  // namespace neuron::ls
