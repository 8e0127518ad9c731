#include "agent/host/last_seen.h"

#include <algorithm>
#include <utility>

#include "agent/host/neuron_sysfs.h"
#include "agent/host/problems.h"

namespace neuron::host {
namespace {

using model::EfaInterface;
using model::HostScan;
using model::NeuronDevice;
using model::Presence;
using model::ScanPart;
using Kind = ScanPart::Kind;

bool has(const LastSeen::Unread& unread, const ScanPart& part) {
  return std::find(unread.begin(), unread.end(), part) != unread.end();
}

bool has_kind(const LastSeen::Unread& unread, Kind kind) {
  return std::any_of(unread.begin(), unread.end(), [kind](const ScanPart& part) { return part.kind == kind; });
}

// A device as it was read last. Its heartbeat is not a missed beat: it was not read.
NeuronDevice stale(NeuronDevice device) {
  if (!device.signals.heartbeat) return device;
  device.signals.heartbeat.reset();
  note_problem(device.problems, kMaxDeviceProblems,
               {model::ProblemKind::health_file,
                device_path(device.index) + "/stats/hardware/health_status/healthcheck_heartbeat",
                "not read; the other values are the previous ones"});
  return device;
}

// Values from the lists of the classes and their links.
void fill_names(EfaInterface& efa, const EfaInterface& known) {
  if (efa.name.empty()) efa.name = known.name;
  if (efa.uverbs) return;
  efa.uverbs = known.uverbs;
  efa.node_present = known.node_present;
  if (!efa.no_completion_cmds) efa.no_completion_cmds = known.no_completion_cmds;
}

void fill_texts(HostScan& scan, const HostScan& known) {
  if (scan.instance_type.empty()) scan.instance_type = known.instance_type;
  if (scan.instance_id.empty()) scan.instance_id = known.instance_id;
  if (scan.driver_version.empty()) scan.driver_version = known.driver_version;
  if (scan.efa_driver_version.empty()) scan.efa_driver_version = known.efa_driver_version;
  if (!scan.lnc) scan.lnc = known.lnc;
}

void fill_devices(HostScan& scan, const LastSeen::Unread& unread, const std::map<int, NeuronDevice>& known) {
  std::map<int, NeuronDevice> lacking = known;
  for (NeuronDevice& device : scan.devices) {
    const auto last = lacking.extract(device.index);
    const bool was_read = device.presence != Presence::present || !has(unread, {Kind::device, device.index});
    if (last && !was_read) device = stale(last.mapped());
  }
  if (!has(unread, {Kind::devices})) return;
  for (auto& [index, device] : lacking) scan.devices.push_back(stale(std::move(device)));
  std::sort(scan.devices.begin(), scan.devices.end(),
            [](const NeuronDevice& a, const NeuronDevice& b) { return a.index < b.index; });
}

void fill_efas(HostScan& scan, const LastSeen::Unread& unread, const std::map<model::Bdf, EfaInterface>& known) {
  std::map<model::Bdf, EfaInterface> lacking = known;
  for (EfaInterface& efa : scan.efas) {
    const auto last = lacking.extract(efa.bdf);
    if (!last || efa.presence != Presence::present) continue;
    if (has(unread, {Kind::efa, 0, efa.bdf})) {
      efa = last.mapped();
    } else if (has(unread, {Kind::efa_classes})) {
      fill_names(efa, last.mapped());
    }
  }
  for (auto& [bdf, efa] : lacking) {
    if (has(unread, {Kind::pci}) || has(unread, {Kind::efa, 0, bdf})) scan.efas.push_back(std::move(efa));
  }
  std::sort(scan.efas.begin(), scan.efas.end(),
            [](const EfaInterface& a, const EfaInterface& b) { return a.bdf < b.bdf; });
}

}  // namespace

UltraServerTexts LastSeen::ultraserver_texts() const {
  const MutexLock lock(mutex_);
  return ultraserver_texts_;
}

bool LastSeen::was_read(Kind list) const {
  if (list == Kind::devices) return devices_were_read_;
  return list == Kind::pci ? pci_was_read_ : classes_were_read_;
}

void LastSeen::fill(HostScan& scan, const Unread& unread) const {
  if (unread.empty()) return;
  const MutexLock lock(mutex_);
  for (const Kind list : {Kind::devices, Kind::pci, Kind::efa_classes}) {
    if (has(unread, {list}) && !was_read(list)) scan.unread_lists.push_back({list});
  }
  if (has(unread, {Kind::host})) fill_texts(scan, host_);
  if (has(unread, {Kind::devices}) && !scan.ultraserver) scan.ultraserver = host_.ultraserver;
  if (has(unread, {Kind::pci}) && scan.neuron_pci_functions == 0) {
    scan.neuron_pci_functions = host_.neuron_pci_functions;
  }
  const bool lacks_devices = has(unread, {Kind::devices}) || has_kind(unread, Kind::device);
  if (lacks_devices && scan.layout == model::DriverLayout::none) scan.layout = host_.layout;
  fill_devices(scan, unread, devices_);
  fill_efas(scan, unread, efas_);
}

void LastSeen::take(const HostScan& scan, const Unread& unread, UltraServerTexts texts) {
  const MutexLock lock(mutex_);
  ultraserver_texts_ = std::move(texts);
  devices_were_read_ = devices_were_read_ || !has(unread, {Kind::devices});
  pci_was_read_ = pci_was_read_ || !has(unread, {Kind::pci});
  const bool has_names =
      std::any_of(scan.efas.begin(), scan.efas.end(), [](const auto& efa) { return efa.uverbs.has_value(); });
  classes_were_read_ = classes_were_read_ || has_names || !has(unread, {Kind::efa_classes});
  host_ = scan;
  host_.devices.clear();
  host_.efas.clear();
  host_.unread_lists.clear();
  std::map<int, NeuronDevice> devices;
  for (const NeuronDevice& device : scan.devices) {
    const bool was_read = device.presence == Presence::present && !has(unread, {Kind::device, device.index}) &&
                          !has(unread, {Kind::devices});
    auto last = devices_.extract(device.index);
    if (was_read || !last) {
      devices.emplace(device.index, device);
    } else {
      devices.insert(std::move(last));
    }
  }
  if (has(unread, {Kind::devices})) devices.merge(devices_);
  devices_ = std::move(devices);
  std::map<model::Bdf, EfaInterface> efas;
  for (const EfaInterface& efa : scan.efas) {
    auto last = efas_.extract(efa.bdf);
    if (efa.presence == Presence::present || !last) {
      efas.emplace(efa.bdf, efa);
    } else {
      efas.insert(std::move(last));
    }
  }
  if (has(unread, {Kind::pci}) || has(unread, {Kind::efa_classes})) efas.merge(efas_);
  efas_ = std::move(efas);
}

}  // namespace neuron::host
