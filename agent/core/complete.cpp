#include "agent/core/complete.h"

#include <algorithm>
#include <string>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/core/logical_cores.h"

namespace neuron::core {
namespace {

using model::EfaInterface;
using model::HostScan;
using model::NeuronDevice;
using model::Origin;
using model::Presence;
using model::ScanPart;
using Kind = ScanPart::Kind;

constexpr int kMaxCpu = 4095;

template <typename T>
model::Sourced<T> assumed(T value) {
  return {std::move(value), Origin::assumed};
}

// The facts of this device by its instance type; nullptr when there are none.
const DeviceFacts* facts_of(const NeuronDevice& device, const InstanceType* type) {
  if (type == nullptr || !type->family || (device.family && *device.family != *type->family)) return nullptr;
  if (device.index < 0 || device.index >= type->device_count) return nullptr;
  return &type->devices[static_cast<std::size_t>(device.index)];
}

bool machine_has_numa_node(const HostScan& scan, int node) {
  if (node < 0 || scan.numa_nodes.empty()) return true;
  return std::any_of(scan.numa_nodes.begin(), scan.numa_nodes.end(), [&](const auto& n) { return n.index == node; });
}

// CPUs of a NUMA node: the machine's own answer, else the table. Node -1: every CPU of a machine with one node.
std::optional<std::vector<int>> cpus_of_node(const HostScan& scan, const InstanceType& type, int node) {
  if (node < 0 && scan.numa_nodes.size() == 1) return scan.numa_nodes.front().cpus;
  for (const model::NumaNode& live : scan.numa_nodes) {
    if (live.index == node) return live.cpus;
  }
  for (const NumaFacts& facts : type.numa) {
    if (facts.index != node && !(node < 0 && type.numa.size() == 1)) continue;
    if (auto cpus = parse_int_list(facts.cpu_list, kMaxCpu)) return *std::move(cpus);
  }
  return std::nullopt;
}

void complete_locality(NeuronDevice& device, const HostScan& scan, const InstanceType& type, const DeviceFacts& facts) {
  if (!device.bdf && facts.bdf && type.bdf_is_stable) device.bdf = assumed(*facts.bdf);
  if (!type.numa_is_known) return;
  if (!device.numa_node && machine_has_numa_node(scan, facts.numa_node)) device.numa_node = assumed(facts.numa_node);
  if (device.cpus || !device.numa_node) return;
  if (auto cpus = cpus_of_node(scan, type, device.numa_node->value)) device.cpus = assumed(*std::move(cpus));
}

// The driver prints an empty list for all when one of 16 devices is missing
// (docs/reference/driver.md#connected-devices), so an empty live list is unknown wherever the table has neighbours.
void complete_neighbours(NeuronDevice& device, const InstanceType& type, const DeviceFacts& facts) {
  if (device.neighbours && (!device.neighbours->value.empty() || facts.neighbours.empty())) return;
  if (type.shape == TopologyShape::unknown) return;
  device.neighbours = assumed(facts.neighbours);
}

void complete_device(NeuronDevice& device, const HostScan& scan, const InstanceType* type) {
  const DeviceFacts* facts = facts_of(device, type);
  const auto family = device.family ? device.family : facts != nullptr ? type->family : std::nullopt;
  if (family) {
    const FamilyFacts chip = family_facts(*family);
    if (!device.physical_cores) device.physical_cores = assumed(chip.physical_cores);
    if (!device.memory_bytes) device.memory_bytes = chip.memory_bytes;
  }
  if (facts == nullptr) return;
  complete_neighbours(device, *type, *facts);
  complete_locality(device, scan, *type, *facts);
}

std::optional<int> default_lnc(const HostScan& scan, const InstanceType* type) {
  if (scan.devices.empty()) return std::nullopt;
  for (const NeuronDevice& device : scan.devices) {
    if (device.family) return family_facts(*device.family).default_lnc;
  }
  if (type != nullptr && type->family) return type->default_lnc;
  return std::nullopt;
}

using Bytes = std::optional<std::uint64_t>;

constexpr std::size_t kMaxDeviceProblems = 8;  // NeuronDevice::problems

// True when the value was above.
bool forget_above(Bytes& bytes, std::uint64_t most) {
  if (!bytes || *bytes <= most) return false;
  bytes.reset();
  return true;
}

std::uint64_t host_memory_of(const model::HostScan& scan) {
  const InstanceType* type = find_instance_type(scan.instance_type);
  if (type == nullptr || type->host_memory_gib <= 0) return kMoreThanAnyMemory;
  return static_cast<std::uint64_t>(type->host_memory_gib) << 30U;
}

void forget_in(model::NeuronDevice& device, std::uint64_t host_memory) {
  const std::uint64_t device_memory = device.memory_bytes.value_or(kMoreThanAnyMemory);
  for (model::CoreSignals& core : device.cores) {
    if (!forget_above(core.device_memory_bytes, device_memory) || device.problems.size() >= kMaxDeviceProblems)
      continue;
    device.problems.push_back({model::ProblemKind::file,
                               "sys/class/neuron_device/neuron" + std::to_string(device.index) + "/neuron_core" +
                                   std::to_string(core.physical_index) + "/stats/memory_usage/device_mem/total",
                               "more than the device has"});
  }
  if (!device.processes) return;
  for (model::Process& process : *device.processes) {
    forget_above(process.device_memory_bytes, device_memory);
    forget_above(process.host_memory_bytes, host_memory);
  }
}

std::uint64_t device_memory_of(const model::HostScan& scan, int index) {
  const NeuronDevice* device = model::find_device(scan.devices, index);
  return device != nullptr ? device->memory_bytes.value_or(kMoreThanAnyMemory) : kMoreThanAnyMemory;
}

bool was_left_out(const HostScan& scan, const ScanPart& part) {
  return std::any_of(scan.unanswered.begin(), scan.unanswered.end(),
                     [&](const model::Unanswered& one) { return one.part == part; });
}

NeuronDevice without_signals(NeuronDevice device, Presence presence) {
  device.presence = presence;
  if (presence == Presence::vanished) device.node_present = false;
  device.signals = {};
  device.cores.clear();
  device.processes.reset();
  device.problems.clear();
  return device;
}

EfaInterface without_signals(EfaInterface efa, Presence presence) {
  efa.presence = presence;
  efa.problems.clear();
  if (presence != Presence::vanished) return efa;
  efa.driver_bound = false;
  efa.node_present = false;
  efa.uverbs.reset();
  efa.p2p.reset();
  efa.no_completion_cmds.reset();
  efa.admin_queue_closed = false;
  return efa;
}

// Facts from PCI, hwloc or the driver instead of the device's own folder.
void fill_place(NeuronDevice& device, const NeuronDevice& known) {
  if (!device.family) device.family = known.family;
  if (!device.bdf) device.bdf = known.bdf;
  if (!device.numa_node) device.numa_node = known.numa_node;
  if (!device.cpus) device.cpus = known.cpus;
  if (device.pcie_root.empty()) device.pcie_root = known.pcie_root;
  if (!device.logical_to_physical) device.logical_to_physical = known.logical_to_physical;
}

void keep_devices(HostScan& scan, std::map<int, NeuronDevice>& before) {
  std::map<int, NeuronDevice> gone = before;
  const bool place_is_unread = was_left_out(scan, {Kind::pci}) || was_left_out(scan, {Kind::topology});
  for (NeuronDevice& device : scan.devices) {
    const auto known = gone.extract(device.index);
    if (was_left_out(scan, {Kind::device, device.index})) {
      if (known) device = without_signals(known.mapped(), Presence::not_answering);
      before.try_emplace(device.index, device);
      continue;
    }
    if (known && (place_is_unread || was_left_out(scan, {Kind::driver, device.index}))) {
      fill_place(device, known.mapped());
    }
    if (device.serial_all_ones && known) device.serial = known.mapped().serial;  // of the device that left the bus
    before[device.index] = device;
  }
  const Presence presence = was_left_out(scan, {Kind::devices})   ? Presence::not_answering
                            : is_unread_list(scan, Kind::devices) ? Presence::unread
                                                                  : Presence::vanished;
  for (auto& [index, device] : gone) scan.devices.push_back(without_signals(std::move(device), presence));
  std::sort(scan.devices.begin(), scan.devices.end(),
            [](const NeuronDevice& a, const NeuronDevice& b) { return a.index < b.index; });
}

// Whether the interface's verbs device was left out, so that the scan could not join the two.
bool verbs_were_left_out(const HostScan& scan, const EfaInterface& efa, const EfaInterface& known) {
  return !efa.uverbs && known.uverbs &&
         std::any_of(scan.unanswered.begin(), scan.unanswered.end(), [&](const model::Unanswered& one) {
           return one.part.kind == Kind::verbs && "uverbs" + std::to_string(one.part.index) == *known.uverbs;
         });
}

// Lists an interface of `before` that the scan does not show.
EfaInterface not_shown(const HostScan& scan, EfaInterface efa) {
  if (was_left_out(scan, {Kind::pci})) return efa;
  if (is_unread_list(scan, Kind::pci)) return without_signals(std::move(efa), Presence::unread);
  const bool left_out = was_left_out(scan, {Kind::efa_classes});
  return without_signals(std::move(efa), left_out ? Presence::not_answering : Presence::vanished);
}

void keep_efas(HostScan& scan, std::map<model::Bdf, EfaInterface>& before) {
  std::map<model::Bdf, EfaInterface> gone = before;
  for (EfaInterface& efa : scan.efas) {
    const auto known = gone.extract(efa.bdf);
    const bool left_out =
        efa.presence == Presence::not_answering || (known && verbs_were_left_out(scan, efa, known.mapped()));
    if (left_out) {
      if (known) efa = without_signals(known.mapped(), Presence::not_answering);
      if (!efa.name.empty()) before.try_emplace(efa.bdf, efa);
    } else if (!efa.name.empty()) {
      before[efa.bdf] = efa;
    } else if (known) {
      efa.name = known.mapped().name;
    }
  }
  for (auto& [bdf, efa] : gone) scan.efas.push_back(not_shown(scan, std::move(efa)));
  std::sort(scan.efas.begin(), scan.efas.end(),
            [](const EfaInterface& a, const EfaInterface& b) { return a.bdf < b.bdf; });
}

void keep_host(HostScan& scan, HostScan& before) {
  if (was_left_out(scan, {Kind::host})) {
    scan.instance_type = before.instance_type;
    scan.instance_id = before.instance_id;
    scan.driver_version = before.driver_version;
    scan.efa_driver_version = before.efa_driver_version;
    scan.driver_settings = before.driver_settings;
    scan.lnc = before.lnc;
    scan.lnc_is_unread = before.lnc_is_unread;
    scan.kernel_log = before.kernel_log;
  }
  if (was_left_out(scan, {Kind::devices})) {
    scan.ultraserver = before.ultraserver;
    scan.ultraserver_is_unread = before.ultraserver_is_unread;
  }
  if (was_left_out(scan, {Kind::pci})) scan.neuron_pci_functions = before.neuron_pci_functions;
  if (was_left_out(scan, {Kind::pci}) || was_left_out(scan, {Kind::topology})) scan.numa_nodes = before.numa_nodes;
  const bool devices_are_unread = std::any_of(scan.unanswered.begin(), scan.unanswered.end(), [](const auto& one) {
    return one.part.kind == Kind::devices || one.part.kind == Kind::device || one.part.kind == Kind::driver;
  });
  if (devices_are_unread && scan.layout == model::DriverLayout::none) scan.layout = before.layout;
  constexpr std::size_t kMaxProblems = 32;
  for (const auto& [part, since] : scan.unanswered) {
    const bool has_verdict = part.kind == Kind::device || part.kind == Kind::driver || part.kind == Kind::efa;
    if (has_verdict || scan.problems.size() >= kMaxProblems) continue;
    scan.problems.push_back({model::ProblemKind::unanswered, "",
                             to_string(part) + " has not returned since " + since +
                                 (part.kind == Kind::memory ? "; it is unknown" : "; the last values are kept")});
  }
  before = scan;
  before.devices.clear();
  before.efas.clear();
}

}  // namespace

HostScan complete(HostScan scan) {
  const InstanceType* type = find_instance_type(scan.instance_type);
  for (NeuronDevice& device : scan.devices) complete_device(device, scan, type);
  const auto lnc = default_lnc(scan, type);
  // The default is a family's maximum: cores are joined only where it is 2.
  if (scan.lnc && lnc && scan.lnc->value > *lnc) {
    scan.problems.push_back({model::ProblemKind::lnc_file, "opt/aws/neuron/logical_nc_config",
                             "asks for LNC " + std::to_string(scan.lnc->value) + ", but these devices support only " +
                                 std::to_string(*lnc) + "; it is ignored"});
    scan.lnc.reset();
  }
  if (!scan.lnc && lnc && (!scan.lnc_is_unread || *lnc == 1)) scan.lnc = assumed(*lnc);
  forget_impossible_memory(scan);
  return scan;
}

void forget_impossible_memory(model::HostScan& scan) {
  const std::uint64_t host_memory = host_memory_of(scan);
  for (model::NeuronDevice& device : scan.devices) forget_in(device, host_memory);
}

void forget_impossible_memory(model::UsageSample& sample, const model::HostScan& scan) {
  const std::uint64_t host_memory = sample.memory ? sample.memory->total_bytes : host_memory_of(scan);
  for (model::DeviceUsage& device : sample.devices) {
    const std::uint64_t device_memory = device_memory_of(scan, device.index);
    for (Bytes& bytes : device.host_memory) forget_above(bytes, host_memory);
    for (model::CoreUsage& core : device.cores) {
      forget_above(core.device_memory_bytes, device_memory);
      forget_above(core.host_memory_bytes, host_memory);
      for (Bytes& bytes : core.device_memory) forget_above(bytes, device_memory);
    }
  }
  for (model::ProcessUsage& process : sample.processes) forget_above(process.resident_bytes, host_memory);
}

void keep_last_seen(HostScan& scan, SeenBefore& before) {
  keep_host(scan, before.host);
  keep_devices(scan, before.devices);
  keep_efas(scan, before.efas);
}

}  // namespace neuron::core
