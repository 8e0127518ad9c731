#include "agent/core/vanished.h"

#include <algorithm>

namespace neuron::core {
namespace {

using model::EfaInterface;
using model::HostScan;
using model::NeuronDevice;
using model::Presence;
using model::ScanPart;
using Kind = ScanPart::Kind;

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
    if (device.serial_all_ones && known) device.serial = known.mapped().serial;  // of the chip that left the bus
    before[device.index] = device;
  }
  const Presence presence = was_left_out(scan, {Kind::devices}) ? Presence::not_answering : Presence::vanished;
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
    scan.kernel_log = before.kernel_log;
  }
  if (was_left_out(scan, {Kind::devices})) scan.ultraserver = before.ultraserver;
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
                             to_string(part) + " has not returned since " + since + "; the last values are kept"});
  }
  before = scan;
  before.devices.clear();
  before.efas.clear();
}

}  // namespace

void keep_last_seen(HostScan& scan, SeenBefore& before) {
  keep_host(scan, before.host);
  keep_devices(scan, before.devices);
  keep_efas(scan, before.efas);
}

}  // namespace neuron::core
