// Driver, devices, their nodes and their health.

#include <algorithm>
#include <array>
#include <set>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/core/ultraserver.h"
#include "agent/health/reasons.h"
#include "agent/health/signals.h"
#include "agent/model/health.h"
#include "agent/preflight/rules.h"

namespace neuron::preflight::rules {
namespace {

using model::DriverLayout;
using model::Family;
using model::HostScan;
using model::NeuronDevice;

constexpr const char* kClass = "sys/class/neuron_device";
constexpr const char* kPci = "sys/bus/pci/devices";
constexpr const char* kModule = "sys/module/neuron/version";
constexpr const char* kType = "sys/devices/virtual/dmi/id/product_name";

// Driver versions that support a family (docs/reference/driver.md#driver-versions).
struct Support {
  Family family;
  health::DriverRelease first;
  health::DriverRelease end;
  const char* words;
};
constexpr std::array<Support, 3> kSupport = {{
    {Family::inferentia, {0, 0, 0}, {2, 25, 0}, "2.24 or older"},
    {Family::trainium2, {2, 19, 0}, {99999, 0, 0}, "2.19 or newer"},
    {Family::trainium3, {2, 25, 4}, {99999, 0, 0}, "2.25.4 or newer"},
}};

Evidence seen_version(const HostScan& scan) {
  return {kModule, scan.driver_version.empty() ? "not readable" : scan.driver_version};
}

Evidence seen_devices(const HostScan& scan) {
  return {kClass, counted(scan.devices.size(), "device")};
}

// Of all Neuron functions on PCI.
std::size_t functions_of(const HostScan& scan) {
  return static_cast<std::size_t>(std::max(scan.neuron_pci_functions, 0));
}

Evidence seen_functions(const HostScan& scan) {
  return {kPci, counted(functions_of(scan), "Neuron function")};
}

const Support* support_of(std::optional<Family> family) {
  const auto* found = std::ranges::find(kSupport, family, &Support::family);
  return found == kSupport.end() ? nullptr : found;
}

std::optional<Family> family_of(const HostScan& scan, const PreflightFacts& facts) {
  for (const NeuronDevice& device : scan.devices) {
    if (device.family) return device.family;
  }
  if (facts.pci_family) return facts.pci_family;
  const core::InstanceType* type = core::find_instance_type(scan.instance_type);
  return type != nullptr ? type->family : std::nullopt;
}

// True when a finding was added.
bool check_version(const HostScan& scan, std::optional<Family> family, Report& report) {
  const Support* support = support_of(family);
  const auto version = health::parse_release(scan.driver_version);
  if (support == nullptr || !version || (*version >= support->first && *version < support->end)) return false;
  const std::string name(model::to_string(*family));
  report.error("driver_wrong_for_chip",
               "driver " + scan.driver_version + " does not support " + name + ": it needs " + support->words,
               {seen_version(scan), seen_functions(scan), seen_devices(scan)},
               *family == Family::inferentia ? "install aws-neuronx-dkms 2.24.* and pin it: later drivers dropped Inf1"
                                             : "update package aws-neuronx-dkms, then reload the driver or reboot");
  return true;
}

void check_layout(const HostScan& scan, Report& report) {
  if (scan.layout == DriverLayout::unknown) {
    report.warning(
        "layout_unknown",
        "driver " + (scan.driver_version.empty() ? "of unknown version" : scan.driver_version) +
            " has a sysfs layout unknown to this program: counters and health are unknown",
        {seen_version(scan),
         {std::string(kClass) + '/' + name_of(scan.devices.front()), "none of the files of drivers 2.5 to 2.30"}},
        "update this program, or pin a driver that it supports (2.30 or older)");
  }
  const auto version = health::parse_release(scan.driver_version);
  if (scan.layout == DriverLayout::bare && (!version || *version < health::DriverRelease{2, 8, 0})) {
    report.warning(
        "driver_old", "the driver is older than 2.8: it shows no counters and no health",
        {{std::string(kClass) + '/' + name_of(scan.devices.front()), "neither info/ nor stats/"}, seen_version(scan)},
        "update package aws-neuronx-dkms, then reload the driver or reboot");
  }
}

void check_type(const HostScan& scan, Report& report) {
  if (core::find_instance_type(scan.instance_type) != nullptr) return;
  const bool neuron = scan.neuron_pci_functions > 0 || !scan.devices.empty();
  if (!neuron && scan.efas.empty()) return;  // any machine: nothing_to_serve says so
  const Severity severity = neuron ? Severity::warning : Severity::info;
  const std::string consequence = neuron ? ": its device count and topology are known from sysfs only" : "";
  if (scan.instance_type.empty()) {
    report.add(severity, "instance_type_unknown", "the instance type cannot be read" + consequence,
               {{kType, "not readable"}}, "mount /sys/devices/virtual/dmi of the host here");
  } else {
    report.add(severity, "instance_type_unknown",
               scan.instance_type + " is an instance type unknown to this program" + consequence,
               {{kType, scan.instance_type}}, neuron ? "update this program" : "");
  }
}

std::vector<int> absent_indices(const HostScan& scan, int count) {
  std::vector<int> absent;
  for (int index = 0; index < count; ++index) {
    const auto at = std::ranges::find(scan.devices, index, &NeuronDevice::index);
    if (at == scan.devices.end()) absent.push_back(index);
  }
  return absent;
}

std::vector<std::string> names_of(const std::vector<int>& indices) {
  std::vector<std::string> names;
  for (const int index : indices) names.push_back("neuron" + std::to_string(index));
  return names;
}

// A driver that finds one device missing prints empty neighbour lists for all others
// (docs/reference/driver.md#connected-devices).
std::string blanked_neighbours(const HostScan& scan) {
  const auto blank = static_cast<std::size_t>(std::ranges::count_if(scan.devices, [](const NeuronDevice& device) {
    return device.neighbours && device.neighbours->origin == model::Origin::assumed &&
           !device.neighbours->value.empty();
  }));
  if (blank == 0) return "";
  return "empty or not readable for " + counted(blank, "device") + "; the official table of the type is used";
}

// Reported neighbours that are absent, where all of these are among the missing devices.
std::vector<Evidence> orphaned_neighbours(const HostScan& scan, const std::vector<int>& absent) {
  std::vector<Evidence> evidence;
  for (const NeuronDevice& device : scan.devices) {
    for (const model::ReadProblem& problem : device.problems) {
      if (problem.kind != model::ProblemKind::absent_neighbours) continue;
      const auto named = parse_int_list(problem.detail, 9999);
      const bool known =
          named && std::ranges::all_of(*named, [&](int index) { return std::ranges::binary_search(absent, index); });
      if (known) evidence.push_back(evidence_of(problem));
    }
  }
  return evidence;
}

void check_count(const HostScan& scan, Report& report) {
  const core::InstanceType* type = core::find_instance_type(scan.instance_type);
  if (type == nullptr || type->device_count == 0) return;
  const auto expected = static_cast<std::size_t>(type->device_count);
  const std::size_t functions = functions_of(scan);
  if (scan.devices.size() > expected) {
    report.warning("devices_unexpected",
                   counted(scan.devices.size(), "Neuron device") + ", but a " + type->name + " has " +
                       std::to_string(expected) + ": the official tables do not apply here",
                   {{kType, type->name}, seen_devices(scan)}, "update this program");
  }
  const bool driver_is_the_reason = scan.devices.empty() && functions >= expected;
  const bool is_unread = is_unread_list(scan, model::ScanPart::Kind::devices);
  if (scan.devices.size() >= expected || driver_is_the_reason || is_unread) return;
  const auto absent = absent_indices(scan, type->device_count);
  const health::Reason& gone = health::reasons::kDeviceVanished;
  std::vector<Evidence> evidence = {
      {kType, type->name + ", which has " + counted(expected, "device")}, seen_devices(scan), seen_functions(scan)};
  std::string sentence = std::to_string(scan.devices.size()) + " of " + counted(expected, "Neuron device") + " of a " +
                         type->name + (scan.devices.size() == 1 ? " is" : " are") + " there";
  if (!scan.devices.empty()) sentence += "; missing: " + joined(names_of(absent));
  sentence += " (" + std::string(gone.code) + ')';
  const std::string blank = blanked_neighbours(scan);
  if (!blank.empty()) {
    sentence += ". One missing device makes the driver blank the neighbour lists of all others";
    evidence.push_back({std::string(kClass) + "/neuron*/connected_devices", blank});
  }
  for (Evidence& seen : orphaned_neighbours(scan, absent)) evidence.push_back(std::move(seen));
  const bool on_pci = functions >= expected;
  report.error(
      "devices_missing", sentence, std::move(evidence),
      std::string(gone.action) +
          (on_pci ? "; the hardware is on PCI but the driver did not bind it: reloading the driver may be enough"
                  : "; the hardware is not on PCI: a reboot may not restore it"),
      scan.devices.empty() ? std::vector<std::string>{} : names_of(absent));
}

// Devices that an election waits for have their own findings.
void check_ultraserver(const HostScan& scan, Report& report) {
  using Phase = core::Election::Phase;
  const core::Election election = core::election_of(scan);
  const std::string path = std::string(kClass) + "/ultraserver_mode";
  if (election.phase == Phase::alone) {
    report.add(Severity::info, "ultraserver_alone", election.sentence, {{path, "4"}}, election.action);
  }
  if (election.phase != Phase::blocked && election.phase != Phase::running) return;
  std::vector<Evidence> evidence = {{path, "busy"}};
  for (const NeuronDevice& device : scan.devices) {
    const auto& state = device.signals.reset_state;
    if (!state || *state == 1) continue;
    const std::string name = name_of(device);
    evidence.push_back({std::string(kClass) + '/' + name + "/reset", std::to_string(*state)});
  }
  report.add(Severity::info, "ultraserver_busy", election.sentence, std::move(evidence), election.action,
             names_of(election.awaited));
}

void check_nodes(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  std::vector<std::string> without;
  for (const NeuronDevice& device : scan.devices) {
    if (!device.node_present) without.push_back(name_of(device));
  }
  if (without.empty()) return;
  const bool none = without.size() == scan.devices.size();
  if (none && facts.own_dev) {
    report.not_checked.push_back({"dev/neuron*", "missing, but this /dev belongs to a container"});
    return;
  }
  std::vector<Evidence> evidence;
  if (none) evidence.push_back({"dev/neuron*", "none"});
  for (std::size_t i = 0; !none && i < without.size(); ++i) evidence.push_back({"dev/" + without[i], "missing"});
  report.error(model::reason::kDeviceNodeMissing,
               none ? "the driver shows " + counted(scan.devices.size(), "device") + ", but none has a device node"
                    : "no device node for " + joined(without),
               std::move(evidence), "restart udev or reload the driver; check the udev rules of aws-neuronx-dkms",
               without);
}

void check_addresses(const HostScan& scan, Report& report) {
  std::size_t assumed = 0;
  std::size_t unknown = 0;
  for (const NeuronDevice& device : scan.devices) {
    if (!device.bdf) ++unknown;
    if (device.bdf && device.bdf->origin == model::Origin::assumed) ++assumed;
  }
  const auto add = [&](std::size_t count, const std::string& consequence) {
    if (count == 0) return;
    report.not_checked.push_back({"PCI address of " + counted(count, "device"),
                                  "the driver did not answer, which is normal without privileges" + consequence});
  };
  add(assumed, "; official tables are used");
  add(unknown, ", and no official table has it: unknown");
}

}  // namespace

void check_driver(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  const bool lacks_devices = scan.neuron_pci_functions > 0 && scan.devices.empty();
  const auto family = family_of(scan, facts);
  if (is_unread_list(scan, model::ScanPart::Kind::devices)) {
    report.not_checked.push_back({std::string(kClass), "cannot be read"});
    return;
  }
  if (lacks_devices && scan.driver_version.empty() && facts.neuron_class != PathState::present) {
    const std::string inf1 = family == Family::inferentia ? " 2.24.*, the last with Inf1 support" : "";
    report.error("driver_missing", "the Neuron driver is not loaded",
                 {{kClass, "missing"}, {kModule, "missing"}, seen_functions(scan)},
                 "run: modprobe neuron; if there is no such module, install package aws-neuronx-dkms" + inf1);
    return;
  }
  if (check_version(scan, family, report)) return;
  if (lacks_devices) {
    report.error("driver_shows_no_device", "the Neuron driver is loaded, but shows no device",
                 {seen_version(scan), {kClass, "no neuron<N>"}, seen_functions(scan)},
                 "check dmesg | grep -i neuron for errors; reload the driver or reboot");
  }
  check_layout(scan, report);
}

void check_devices(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  check_type(scan, report);
  check_count(scan, report);
  check_ultraserver(scan, report);
  check_nodes(scan, facts, report);
  if (serves_nothing(scan) && scan.unread_lists.empty()) {
    report.add(Severity::info, "nothing_to_serve",
               "neither a Neuron device nor an EFA interface: the agent stays up and registers nothing",
               {{kType, scan.instance_type.empty() ? "not readable" : scan.instance_type},
                {kPci, "no Neuron and no EFA function"}},
               "");
  }
  check_addresses(scan, report);
}

}  // namespace neuron::preflight::rules
