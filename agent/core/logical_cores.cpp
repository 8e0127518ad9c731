#include "agent/core/logical_cores.h"

#include <algorithm>
#include <set>

#include "agent/core/catalogue.h"

namespace neuron::core {
namespace {

// The driver knows at most 64 devices of 8 cores (docs/reference/driver.md#pci-ids-and-limits); anything far beyond is
// not a core count.
constexpr int kMaxCores = 64;
constexpr int kMaxIndex = 1023;

std::optional<FamilyFacts> chip_of(const model::HostScan& host) {
  for (const model::NeuronDevice& device : host.devices) {
    if (device.family) return family_facts(*device.family);
  }
  const InstanceType* type = find_instance_type(host.instance_type);
  if (type == nullptr || !type->family) return std::nullopt;
  return family_facts(*type->family);
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

std::optional<int> logical_cores_of(const model::NeuronDevice& device, const model::HostScan& scan) {
  if (!device.physical_cores || !scan.lnc) return std::nullopt;
  const int physical = device.physical_cores->value;
  const int lnc = scan.lnc->value;
  if (lnc < 1 || physical < lnc || physical > kMaxCores) return std::nullopt;
  return physical / lnc;
}

int cores_per_device(const model::HostScan& scan) {
  int most = 0;
  for (const model::NeuronDevice& device : scan.devices) {
    most = std::max(most, logical_cores_of(device, scan).value_or(0));
  }
  return most;
}

std::vector<int> physical_order_of(const model::NeuronDevice& device) {
  const auto count = static_cast<std::size_t>(device.physical_cores ? device.physical_cores->value : 0);
  if (device.logical_to_physical && device.logical_to_physical->size() >= count) return *device.logical_to_physical;
  const model::Family family = device.family.value_or(model::Family::trainium1);  // identity
  return assumed_logical_to_physical(family, device.index, static_cast<int>(count));
}

std::vector<int> physical_cores_of(const model::NeuronDevice& device, const model::HostScan& scan, int position) {
  const auto count = logical_cores_of(device, scan);
  if (!count || position < 0 || position >= *count) return {};
  const std::vector<int> order = physical_order_of(device);
  const int width = scan.lnc->value;  // logical_cores_of needs it too
  std::vector<int> physical;
  for (int i = position * width; i < (position + 1) * width && i < static_cast<int>(order.size()); ++i) {
    physical.push_back(order[static_cast<std::size_t>(i)]);
  }
  if (static_cast<int>(physical.size()) != width) return {};
  return physical;
}

std::vector<CorePlace> core_places(const model::NeuronDevice& device, const model::HostScan& scan,
                                   const std::vector<int>& places) {
  std::vector<std::vector<int>> orders;
  const InstanceType* type = find_instance_type(scan.instance_type);
  const auto family = device.family ? device.family : type != nullptr ? type->family : std::nullopt;
  if (device.logical_to_physical) {
    orders.push_back(*device.logical_to_physical);
  } else if (family && device.physical_cores) {
    orders = possible_logical_to_physical(*family, device.index, device.physical_cores->value);
  }
  std::vector<CorePlace> found;
  for (const int place : places) {
    if (orders.empty() || place < 0 || place >= static_cast<int>(orders[0].size())) continue;
    CorePlace one{place, orders[0][static_cast<std::size_t>(place)], {}};
    for (const auto& order : orders) {
      const auto at = std::find(order.begin(), order.end(), one.physical);
      const int other = static_cast<int>(at - order.begin());
      if (at != order.end() && other != place) one.others.push_back(other);
    }
    found.push_back(std::move(one));
  }
  return found;
}

std::string pids_on_core(const model::NeuronDevice& device, int physical_core) {
  std::string pids;
  if (!device.processes) return pids;
  for (const model::Process& process : *device.processes) {
    if (((process.core_mask.value_or(0) >> physical_core) & 1U) != 0) pids += " pid " + std::to_string(process.pid);
  }
  return pids;
}

const model::Health& health_of_cores(const model::NeuronDevice& device, const std::vector<int>& physical) {
  const model::Health* worst = nullptr;
  for (const int core : physical) {
    if (core < 0 || static_cast<std::size_t>(core) >= device.core_health.size()) continue;
    const model::Health& health = device.core_health[static_cast<std::size_t>(core)];
    if (worst == nullptr || model::badness(health.state) > model::badness(worst->state)) worst = &health;
  }
  return worst != nullptr ? *worst : device.health;
}

std::vector<int> core_ids_of(const model::NeuronDevice& device, const model::HostScan& scan) {
  std::vector<int> ids;
  if (device.index < 0 || device.index > kMaxIndex) return ids;
  const int first = device.index * cores_per_device(scan);
  for (int i = 0; i < logical_cores_of(device, scan).value_or(0); ++i) ids.push_back(first + i);
  return ids;
}

std::vector<int> possible_lncs(const model::HostScan& host) {
  const auto chip = chip_of(host);
  return chip && chip->default_lnc == 1 ? std::vector{1} : std::vector{1, 2};
}

int device_limit(const model::HostScan& host) {
  constexpr int kMaxDevices = 64;
  const InstanceType* type = find_instance_type(host.instance_type);
  return type != nullptr && type->family ? type->device_count : kMaxDevices;
}

std::optional<int> physical_cores_per_device(const model::HostScan& host) {
  int most = 0;
  for (const model::NeuronDevice& device : host.devices) {
    if (device.physical_cores) most = std::max(most, device.physical_cores->value);
  }
  if (most > 0) return most;
  const auto chip = chip_of(host);
  return chip ? std::optional(chip->physical_cores) : std::nullopt;
}

std::optional<int> lnc_in_use(const NumberingEvidence& evidence, const model::HostScan& host) {
  const auto chip = chip_of(host);
  const auto physical = physical_cores_per_device(host);
  const bool may_assume = chip && (!host.lnc_is_unread || chip->default_lnc == 1);
  const std::optional<int> now = host.lnc     ? std::optional(host.lnc->value)
                                 : may_assume ? std::optional(chip->default_lnc)
                                              : std::nullopt;
  if (!physical || !chip || evidence.given.empty()) return now;
  std::vector<int> possible;  // 2 only where the device supports it, which is where it is the default
  for (int lnc = 1; lnc <= std::min(chip->default_lnc, *physical); ++lnc) {
    if (fits(evidence, *physical / lnc, device_limit(host))) possible.push_back(lnc);
  }
  const bool as_now = now && std::find(possible.begin(), possible.end(), *now) != possible.end();
  const bool is_guess = !now && possible.size() > 1;
  if (possible.empty() || ((as_now || is_guess) && !evidence.highest_listed)) return now;
  return possible.back();
}

}  // namespace neuron::core
