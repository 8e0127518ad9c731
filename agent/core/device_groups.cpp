#include "agent/core/device_groups.h"

#include <set>

#include "agent/base/encoding.h"

namespace neuron::core {
namespace {

const std::optional<model::Bdf>* nearest_of(const InstanceType& type, int device) {
  if (device < 0 || device >= static_cast<int>(type.devices.size())) return nullptr;
  return &type.devices[static_cast<std::size_t>(device)].nearest_efa;
}

// Of the addresses in the table, whether or not the machine has them; sorted as text.
std::string id_of_group(const InstanceType& type, int device, int size) {
  constexpr std::size_t kDigits = 16;
  std::set<std::string> addresses;
  const int first = device / size * size;
  for (int member = first; member < first + size; ++member) {
    const auto* nearest = nearest_of(type, member);
    if (nearest != nullptr && *nearest) addresses.insert(model::to_string(**nearest));
  }
  std::string joined;
  for (const std::string& address : addresses) joined += (joined.empty() ? "" : ",") + address;
  return sha256_hex(joined).substr(0, kDigits);
}

}  // namespace

std::optional<DeviceGroupIds> device_group_ids(const InstanceType& type, int device) {
  const auto* nearest = nearest_of(type, device);
  if (nearest == nullptr || !*nearest) return std::nullopt;
  return DeviceGroupIds{model::to_string(**nearest), id_of_group(type, device, 4), id_of_group(type, device, 8),
                        id_of_group(type, device, 16)};
}

std::optional<DeviceGroupIds> device_group_ids(const InstanceType& type, const model::Bdf& efa) {
  for (std::size_t i = 0; i < type.devices.size(); ++i) {
    if (type.devices[i].nearest_efa == efa) return device_group_ids(type, static_cast<int>(i));
  }
  return std::nullopt;
}

}  // namespace neuron::core
