#include "agent/holdings/held.h"

#include <map>
#include <string>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/health/assess.h"

namespace neuron::holdings {
namespace {

using model::EfaInterface;
using model::Health;
using model::HostScan;
using model::NeuronDevice;
using model::Presence;
using model::Snapshot;

constexpr int kMaxDevices = 64;  // the driver's own limit (docs/reference/driver.md#pci-ids-and-limits)
constexpr std::size_t kMaxEfas = 64;

// One driver serves one architecture: a device that nobody sees is what its neighbours are.
std::optional<model::Family> family_of(const HostScan& host) {
  for (const NeuronDevice& device : host.devices) {
    if (device.family) return device.family;
  }
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  return type != nullptr ? type->family : std::nullopt;
}

std::optional<model::Bdf> address_in(std::string_view name) {
  constexpr std::string_view kPrefix = "rdmap";
  const auto slot_at = name.find('s');
  if (!name.starts_with(kPrefix) || slot_at == std::string_view::npos) return std::nullopt;
  const auto bus = parse_int(name.substr(kPrefix.size(), slot_at - kPrefix.size()), 0, 0xff);
  const auto slot = parse_int(name.substr(slot_at + 1), 0, 0x1f);
  if (!bus || !slot || name != std::string(kPrefix) + std::to_string(*bus) + "s" + std::to_string(*slot)) {
    return std::nullopt;
  }
  return model::Bdf{0, static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*slot), 0};
}

}  // namespace

bool note_held_device(core::SeenBefore& held, int index, const HostScan& host) {
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  const int count = type != nullptr && type->family ? type->device_count : kMaxDevices;
  if (index < 0 || index >= count) return false;
  NeuronDevice device;
  device.index = index;
  device.family = family_of(host);
  return held.devices.emplace(index, std::move(device)).second;
}

bool note_held_efa(core::SeenBefore& held, std::string_view name) {
  const auto address = address_in(name);
  if (!address || held.efas.size() == kMaxEfas) return false;
  EfaInterface efa;
  efa.name = name;
  efa.bdf = *address;
  return held.efas.emplace(*address, std::move(efa)).second;
}

Snapshot with_held(const Snapshot& snapshot, const core::SeenBefore& held, std::optional<int> lnc) {
  std::map<int, Health> devices;
  std::map<int, std::vector<Health>> cores;
  std::map<model::Bdf, Health> efas;
  for (std::size_t i = 0; i < snapshot.host.devices.size(); ++i) {
    devices[snapshot.host.devices[i].index] = snapshot.device_health.at(i);
    if (i < snapshot.core_health.size()) cores[snapshot.host.devices[i].index] = snapshot.core_health[i];
  }
  for (std::size_t i = 0; i < snapshot.host.efas.size(); ++i) {
    efas[snapshot.host.efas[i].bdf] = snapshot.efa_health.at(i);
  }
  Snapshot result = snapshot;
  health::AssessMemory before{held, {}};
  HostScan shown = snapshot.host;
  shown.unanswered.clear();  // the snapshot has already put in what was seen last
  // What the snapshot says of health stays, as it rests on more than one scan; that of a vanished device does not.
  health::Assessment verdicts = health::assess(std::move(shown), before, SteadyTime{});
  result.host = std::move(verdicts.host);
  result.host.unanswered = snapshot.host.unanswered;
  if (lnc && (!result.host.lnc || result.host.lnc->value != *lnc)) result.host.lnc = {*lnc, model::Origin::live};
  result.device_health.clear();
  result.core_health.clear();
  result.efa_health.clear();
  for (std::size_t i = 0; i < result.host.devices.size(); ++i) {
    const auto known = devices.find(result.host.devices[i].index);
    result.device_health.push_back(known != devices.end() ? known->second : verdicts.devices.at(i));
    const auto known_cores = cores.find(result.host.devices[i].index);
    result.core_health.push_back(known_cores != cores.end() ? known_cores->second : verdicts.cores.at(i));
  }
  for (std::size_t i = 0; i < result.host.efas.size(); ++i) {
    const auto known = efas.find(result.host.efas[i].bdf);
    result.efa_health.push_back(known != efas.end() ? known->second : verdicts.efas.at(i));
  }
  return result;
}

}  // namespace neuron::holdings
