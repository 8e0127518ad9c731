#include "tools/neuron-ls/node_reader.h"

#include <algorithm>
#include <map>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/core/complete.h"
#include "agent/health/efa.h"
#include "agent/host/proc_files.h"
#include "agent/host/scanner.h"
#include "agent/model/health.h"
#include "tools/pods/pods.h"

namespace neuron::ls {
namespace {

constexpr std::size_t kMaxCommandLine = 1 << 20;  // bytes; longer ones are left unresolved
constexpr std::size_t kMaxShown = 512;            // bytes, more than any column holds
constexpr std::chrono::seconds kKubeletBudget(2);

std::string command_line(const host::FsRoot& root, int pid) {
  auto text = root.read_file("proc/" + std::to_string(pid) + "/cmdline", kMaxCommandLine);
  if (!text) return "";
  std::ranges::replace(*text, '\0', ' ');
  return printable(trim(*text), kMaxShown);
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

// Whether dev/ is a container's own. Every host has dev/kmsg and few containers do. For a captured root the sign is
// that at least half of the devices have no node.
bool has_own_dev(const host::FsRoot& root, const model::HostScan& host) {
  if (root.is_live()) return !root.exists("dev/kmsg");
  const auto without =
      std::ranges::count_if(host.devices, [](const model::NeuronDevice& device) { return !device.node_present; });
  return 2 * static_cast<std::size_t>(without) >= host.devices.size();
}

// Without any verbs device the advice depends on whether the module is loaded, which the health policy does not see.
void explain_verbs(const host::FsRoot& root, model::HostScan& host) {
  for (model::EfaInterface& efa : host.efas) {
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

NodeReader::NodeReader(RootPtr root, const Options& options)
    : root_(std::move(root)), options_(options), scans_(workers_, scan_maker(root_)) {}

Reading NodeReader::read() {
  Reading reading;
  const model::HostScan scan = scans_.scan();
  reading.warning = warning_of(scan);
  model::HostScan host = core::complete(scan);
  const bool own_dev = has_own_dev(*root_, host);
  const bool interfaces_count = options_.efa || options_.format == Format::svg;
  const bool only_efas = interfaces_count && !options_.json && has_interfaces_only(host);
  if (!scan.unanswered.empty() && scan.devices.empty()) {
    reading.absence = Absence{reading.warning, "see the kernel log for the cause; try again later"};
  } else if (!only_efas) {
    reading.absence = explain_absence(host, options_.root, refusals_of(*root_, host));
  }
  if (options_.health || shows_everything(options_)) host = assessed(scan, own_dev);
  report::NodeReport& report = reading.report = report::make_node_report(std::move(host), report::empty_lists(scan));
  report.own_dev = own_dev;
  if (options_.format == Format::svg) report::add_picture(report);
  report.commands = read_process_commands(*root_, report.host);
  if (options_.pods && !reading.absence) ask_kubelet(reading);
  return reading;
}

// A container sees the nodes of its own devices only, which says nothing about the health of the others: there the
// verdict is given as if each node were present, and node_present keeps its true value.
model::HostScan NodeReader::assessed(model::HostScan scan, bool own_dev) {
  std::set<int> with_node;
  for (model::NeuronDevice& device : scan.devices) {
    if (device.node_present) with_node.insert(device.index);
    device.node_present |= own_dev;
  }
  health::Assessment node = health::assess(std::move(scan), memory_, std::chrono::steady_clock::now());
  for (model::NeuronDevice& device : node.host.devices) device.node_present = with_node.contains(device.index);
  explain_verbs(*root_, node.host);
  return std::move(node.host);
}

void NodeReader::ask_kubelet(Reading& reading) const {
  const auto holdings = pods::query_pods(pod_socket(options_), kKubeletBudget);
  if (holdings) {
    reading.report.pods = report::pod_uses(*holdings, reading.report, options_.dra_driver_name);
  } else {
    if (!reading.warning.empty()) reading.warning += "; ";
    reading.warning +=
        "pods are unknown: " + holdings.error().message + " (--kubelet-dir sets the kubelet's directory)";
  }
}

}  // namespace neuron::ls
