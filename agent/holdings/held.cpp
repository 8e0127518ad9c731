#include "agent/holdings/held.h"

#include <string>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/health/assess.h"

namespace neuron::holdings {
namespace {

using model::EfaInterface;
using model::HostScan;
using model::NeuronDevice;
using model::Snapshot;

constexpr int kMaxDevices = 64;  // the driver's own limit (docs/reference/driver.md#pci-ids-and-limits)
constexpr std::size_t kMaxEfas = 64;

// One driver serves one architecture, so a missing device has the family of its siblings.
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
  Snapshot result = snapshot;
  if (!held.devices.empty() || !held.efas.empty()) result.host = health::with_held(std::move(result.host), held);
  if (lnc && (!result.host.lnc || result.host.lnc->value != *lnc)) result.host.lnc = {*lnc, model::Origin::live};
  return result;
}

}  // namespace neuron::holdings
