#include "tools/neuron-ls/node_reader.h"

#include <algorithm>
#include <map>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/core/complete.h"
#include "agent/health/assess.h"
#include "agent/host/proc_files.h"
#include "agent/host/scanner.h"
#include "agent/model/health.h"
#include "tools/pods/pods.h"
#include "tools/render/text.h"

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

std::string path_in(const std::string& root, const std::string& path) {
  return root.ends_with('/') ? root + path : root + '/' + path;
}

Absence without_device_nodes(const model::HostScan& scan, const std::string& root) {
  return {
      "the Neuron driver shows " + counted(scan.devices.size(), "device") + ", but there is no device node " +
          path_in(root, "dev/neuron*"),
      "in a container: request aws.amazon.com/neuron (Kubernetes) or pass --device /dev/neuron0 (docker); on a host: "
      "check the udev rules of package aws-neuronx-dkms"};
}

Absence without_driver(const model::HostScan& scan, const std::string& root) {
  return {counted(static_cast<std::size_t>(scan.neuron_pci_functions), "Neuron PCI function") +
              " found, but the kernel driver is not loaded: there is no " + path_in(root, "sys/class/neuron_device"),
          "run: modprobe neuron; if there is no such module, install package aws-neuronx-dkms"};
}

Absence without_registered_device(const model::HostScan& scan, const std::string& root) {
  const std::string version = scan.driver_version.empty() ? "" : ' ' + printable(scan.driver_version);
  return {
      "the Neuron driver" + version + " is loaded, but shows no device in " + path_in(root, "sys/class/neuron_device"),
      "look for errors in: dmesg | grep -i neuron (Inf1 needs driver 2.24 or older)"};
}

Absence without_hardware(const model::HostScan& scan, const std::string& root) {
  const auto* type = core::find_instance_type(scan.instance_type);
  const std::string pci = path_in(root, "sys/bus/pci/devices");
  if (type != nullptr && type->device_count > 0) {
    return {"an instance of type " + type->name + " has " +
                counted(static_cast<std::size_t>(type->device_count), "Neuron device") + ", but none is in " + pci +
                " and no driver is loaded",
            "mount /sys of the host here; if it is mounted, stop and start the instance"};
  }
  const std::string where = scan.instance_type.empty() ? "" : " (instance type " + printable(scan.instance_type) + ")";
  return {"this machine has no Neuron device" + where + ": none in " + pci + " and no driver is loaded",
          "run it on an Inf or Trn instance; for a captured or simulated machine set --root to its directory"};
}

Absence without_class_rights(const std::string& root) {
  return {"this user cannot read " + path_in(root, "sys/class/neuron_device"),
          "run it as root, or mount the host's /sys into the container"};
}

Absence without_class_list(const model::HostScan& scan, const std::string& root) {
  const auto problem = std::ranges::find_if(
      scan.problems, [](const model::ReadProblem& one) { return one.path == "sys/class/neuron_device"; });
  const std::string why = problem == scan.problems.end() ? "" : ": " + describe_problem(*problem);
  return {path_in(root, "sys/class/neuron_device") + " cannot be read" + why,
          "try again; if it still fails, read the kernel log"};
}

Absence without_file_rights(const model::HostScan& scan, const std::string& root) {
  const std::string version = scan.driver_version.empty() ? "this driver" : "driver " + printable(scan.driver_version);
  return {version + " shows cores and connections of the devices in " + path_in(root, "sys/class/neuron_device") +
              " only to root",
          "run it as root (required by drivers up to 2.27), or install driver 2.28 or newer"};
}

// Cores or neighbours of a device are neither in its files nor in the tables of the instance type.
bool lacks_facts(const model::HostScan& scan) {
  return std::ranges::any_of(
      scan.devices, [](const model::NeuronDevice& device) { return !device.physical_cores || !device.neighbours; });
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

std::optional<Absence> explain_absence(const model::HostScan& scan, const std::string& root, const Refusals& refusals) {
  const auto has_node = [](const model::NeuronDevice& device) { return device.node_present; };
  if (std::ranges::any_of(scan.devices, has_node)) {
    if (refusals.root_only_files && lacks_facts(scan)) return without_file_rights(scan, root);
    return std::nullopt;
  }
  if (refusals.class_directory) return without_class_rights(root);
  if (!scan.devices.empty()) return without_device_nodes(scan, root);
  if (is_unread_list(scan, model::ScanPart::Kind::devices)) return without_class_list(scan, root);
  if (scan.layout != model::DriverLayout::none || !scan.driver_version.empty()) {
    return without_registered_device(scan, root);
  }
  if (scan.neuron_pci_functions > 0) return without_driver(scan, root);
  return without_hardware(scan, root);
}

}  // namespace neuron::ls
