// Devices that do not fit their instance type or one another, and resets that failed.

#include <algorithm>
#include <map>
#include <set>

#include "agent/core/catalogue.h"
#include "agent/preflight/rules.h"

namespace neuron::preflight::rules {
namespace {

using model::Family;
using model::HostScan;
using model::NeuronDevice;

// A device's value by the machine itself, as text; "" where unknown.
struct Trait {
  const char* path;  // below the device's folder
  std::string (*value)(const NeuronDevice& device);
};

const Trait kTraits[] = {
    {"info/architecture/device_name",
     [](const NeuronDevice& device) { return std::string(device.family ? model::to_string(*device.family) : ""); }},
    {"info/architecture/arch_type", [](const NeuronDevice& device) { return device.arch; }},
    {"core_count",
     [](const NeuronDevice& device) {
       const auto& cores = device.physical_cores;
       return cores && cores->origin == model::Origin::live ? std::to_string(cores->value) : std::string();
     }},
};

// The value of most devices; of a tie that of the device with the lowest index. "" when unknown for all.
std::string usual_value(const HostScan& scan, const Trait& trait) {
  std::map<std::string, int> counts;
  for (const NeuronDevice& device : scan.devices) {
    if (const std::string value = trait.value(device); !value.empty()) ++counts[value];
  }
  std::string usual;
  for (const NeuronDevice& device : scan.devices) {
    const std::string value = trait.value(device);
    if (!value.empty() && (usual.empty() || counts[value] > counts[usual])) usual = value;
  }
  return usual;
}

void check_sisters(const HostScan& scan, Report& report) {
  Shown evidence;
  std::set<int> odd;
  for (const Trait& trait : kTraits) {
    const std::string usual = usual_value(scan, trait);
    for (const NeuronDevice& device : scan.devices) {
      const std::string value = trait.value(device);
      if (value.empty() || value == usual) continue;
      odd.insert(device.index);
      evidence.add({health::folder_of(device) + trait.path, value + "; most others: " + usual});
    }
  }
  if (odd.empty()) return;
  std::vector<std::string> names;
  for (const int index : odd) names.push_back("neuron" + std::to_string(index));
  report.error("devices_differ",
               joined(names) + (names.size() == 1 ? " differs" : " differ") +
                   " from the other devices in family, architecture or core count",
               evidence.take(),
               "check dmesg | grep -i neuron; reload the driver; if that does not help, replace the instance", names);
}

// Compares the family of all devices with that of the instance type; a single odd device is reported above.
void check_family(const HostScan& scan, Report& report) {
  const core::InstanceType* type = core::find_instance_type(scan.instance_type);
  if (type == nullptr) return;
  std::set<Family> families;
  for (const NeuronDevice& device : scan.devices) {
    if (device.family) families.insert(*device.family);
  }
  if (families.size() != 1 || families.contains(type->family.value_or(*families.begin()))) return;
  const std::string family(model::to_string(*families.begin()));
  report.error("chip_unexpected",
               "the devices are " + family + ", but a " + type->name + " has " +
                   std::string(model::to_string(*type->family)) + ": the official tables do not apply here",
               {{"sys/devices/virtual/dmi/id/product_name", type->name},
                {health::folder_of(scan.devices.front()) + "info/architecture/device_name", family}},
               "check which of the two is wrong: DMI of another machine mounted here, or a driver that misidentifies "
               "the device");
}

struct Shared {
  std::string code;
  std::string what;     // "PCI address"
  std::string between;  // consequence
  std::string fix;
};

// Devices with the same value of a unique property.
void check_shared(const std::map<std::string, std::vector<const NeuronDevice*>>& holders, const std::string& file,
                  const Shared& shared, Report& report) {
  for (const auto& [value, devices] : holders) {
    if (devices.size() < 2) continue;
    std::vector<Evidence> evidence;
    std::vector<std::string> names;
    for (const NeuronDevice* device : devices) {
      names.push_back(name_of(*device));
      evidence.push_back(
          {file.empty() ? "driver's answer for " + names.back() : health::folder_of(*device) + file, value});
    }
    report.warning(shared.code, joined(names) + " have the same " + shared.what + ": " + shared.between,
                   std::move(evidence), shared.fix, names);
  }
}

void check_identities(const HostScan& scan, Report& report) {
  std::map<std::string, std::vector<const NeuronDevice*>> addresses;
  std::map<std::string, std::vector<const NeuronDevice*>> serials;
  for (const NeuronDevice& device : scan.devices) {
    if (device.bdf && device.bdf->origin == model::Origin::live) {
      addresses[model::to_string(device.bdf->value)].push_back(&device);
    }
    if (device.serial) serials[*device.serial].push_back(&device);
  }
  check_shared(addresses, "",
               {"address_twice", "PCI address", "NUMA node, CPUs and nearest EFA of all but one are wrong",
                "check dmesg | grep 'nd\\['; reload the driver; for a captured machine check neuron-ioctl/"},
               report);
  check_shared(serials, "info/serial_number",
               {"serial_twice", "serial number", "a fault cannot be attributed to one device",
                "check dmesg | grep -i neuron; reload the driver; if that does not help, replace the instance"},
               report);
}

// A check reads the counter once and can only report that it is not zero.
void check_resets(const PreflightFacts& facts, Report& report) {
  std::vector<std::string> names;
  Shown evidence;
  for (const FailedResets& failed : facts.failed_resets) {
    const std::string name = "neuron" + std::to_string(failed.device);
    const std::string path = "sys/class/neuron_device/" + name + "/neuron_core" + std::to_string(failed.core) +
                             "/stats/other_info/reset_fail_count/total";
    if (!failed.unread.empty()) {
      report.not_checked.push_back({path, failed.unread});
      continue;
    }
    evidence.add({path, std::to_string(failed.count)});
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  if (names.empty()) return;
  report.warning(
      "resets_failed", "resets of " + joined(names) + " have failed since the driver was loaded", evidence.take(),
      "if the count grows, drain the node, then reload the driver or reboot; if it keeps growing, replace the instance",
      names);
}

}  // namespace

void check_fit(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  check_sisters(scan, report);
  check_family(scan, report);
  check_identities(scan, report);
  check_resets(facts, report);
}

}  // namespace neuron::preflight::rules
