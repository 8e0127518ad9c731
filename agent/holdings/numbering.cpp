#include "agent/holdings/numbering.h"

#include <algorithm>
#include <set>

#include "agent/core/catalogue.h"

namespace neuron::holdings {
namespace {

using model::HostScan;

std::optional<core::FamilyFacts> chip_of(const HostScan& host) {
  for (const model::NeuronDevice& device : host.devices) {
    if (device.family) return core::family_facts(*device.family);
  }
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  if (type == nullptr || !type->family) return std::nullopt;
  return core::family_facts(*type->family);
}

// One more than the highest device index that the node may have.
int device_limit(const HostScan& host) {
  constexpr int kMaxDevices = 64;
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  return type != nullptr && type->family ? type->device_count : kMaxDevices;
}

bool fits(const NumberingEvidence& evidence, int cores_per_device, int devices) {
  const auto exists = [&](int core) { return core / cores_per_device < devices; };
  if (evidence.highest_listed && !exists(*evidence.highest_listed)) return false;
  return std::all_of(evidence.given.begin(), evidence.given.end(), [&](const NumberingEvidence::Given& one) {
    std::set<int> touched;
    for (const int core : one.cores) {
      if (!exists(core)) return false;
      touched.insert(core / cores_per_device);
    }
    return one.devices.empty() || std::equal(touched.begin(), touched.end(), one.devices.begin(), one.devices.end());
  });
}

}  // namespace

std::optional<int> physical_cores_per_device(const HostScan& host) {
  int most = 0;
  for (const model::NeuronDevice& device : host.devices) {
    if (device.physical_cores) most = std::max(most, device.physical_cores->value);
  }
  if (most > 0) return most;
  const auto chip = chip_of(host);
  return chip ? std::optional(chip->physical_cores) : std::nullopt;
}

std::optional<int> lnc_in_use(const NumberingEvidence& evidence, const HostScan& host) {
  const auto chip = chip_of(host);
  const auto physical = physical_cores_per_device(host);
  const std::optional<int> now = host.lnc ? std::optional(host.lnc->value)
                                 : chip   ? std::optional(chip->default_lnc)
                                          : std::nullopt;
  if (!physical || !chip || evidence.given.empty()) return now;
  std::vector<int> possible;  // 2 only where the chip knows it, which is where it is the default
  for (int lnc = 1; lnc <= std::min(chip->default_lnc, *physical); ++lnc) {
    if (fits(evidence, *physical / lnc, device_limit(host))) possible.push_back(lnc);
  }
  const bool as_now = now && std::find(possible.begin(), possible.end(), *now) != possible.end();
  if (possible.empty() || (as_now && !evidence.highest_listed)) return now;
  return possible.back();
}

}  // namespace neuron::holdings
