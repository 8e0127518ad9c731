#include "agent/core/catalogue.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <set>

#include "agent/base/near_match.h"
#include "agent/base/parse.h"

namespace neuron::core {
namespace {

constexpr std::uint64_t kGib = std::uint64_t{1} << 30U;

// docs/reference/driver.md#logical-cores: physical order for logical positions 0-7 of Trainium2, by device index mod
// 16.
using CoreOrder = std::array<int, 8>;
constexpr CoreOrder kOrderA = {4, 5, 6, 7, 2, 3, 0, 1};  // devices 0, 2, 8, 10
constexpr CoreOrder kOrderB = {2, 3, 0, 1, 4, 5, 6, 7};  // devices 1, 3, 9, 11
constexpr CoreOrder kOrderC = {0, 1, 2, 3, 6, 7, 4, 5};  // devices 4, 6, 12, 14
constexpr CoreOrder kOrderD = {6, 7, 4, 5, 0, 1, 2, 3};  // devices 5, 7, 13, 15

const std::optional<model::Bdf>* nearest_of(const InstanceType& type, int device) {
  if (device < 0 || device >= static_cast<int>(type.devices.size())) return nullptr;
  return &type.devices[static_cast<std::size_t>(device)].nearest_efa;
}

// Of the addresses in the table, also those that the machine lacks; sorted as text.
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

std::string_view to_string(TopologyShape shape) {
  constexpr std::array<std::string_view, 7> kNames = {"none",      "chain",    "line",   "ring",
                                                      "torus_4x4", "switched", "unknown"};
  return kNames.at(static_cast<std::size_t>(shape));
}

FamilyFacts family_facts(model::Family family) {
  switch (family) {
    case model::Family::inferentia:
      return {4, 1, 8 * kGib};
    case model::Family::inferentia2:
      return {2, 1, 32 * kGib};
    case model::Family::trainium1:
      return {2, 1, 32 * kGib};
    case model::Family::trainium2:
      return {8, 2, 96 * kGib};
    case model::Family::trainium3:
      return {8, 2, 144 * kGib};
  }
  return {};
}

const InstanceType* find_instance_type(std::string_view name) {
  if (name.starts_with("ml.")) name.remove_prefix(3);
  const auto types = all_instance_types();
  const auto found = std::find_if(types.begin(), types.end(), [&](const auto& type) { return type.name == name; });
  return found == types.end() ? nullptr : &*found;
}

Result<const InstanceType*> instance_type_called(std::string_view name) {
  if (const InstanceType* type = find_instance_type(name)) return type;
  std::vector<std::string> names;
  std::ranges::transform(all_instance_types(), std::back_inserter(names), &InstanceType::name);
  return fail(ErrorCode::invalid_argument,
              "unknown instance type \"" + printable(name) + "\"" + did_you_mean(name, names));
}

std::vector<int> assumed_logical_to_physical(model::Family family, int device_index, int physical_cores) {
  const bool permuted = family == model::Family::trainium2 || family == model::Family::trainium3;
  if (permuted && physical_cores == 8 && device_index >= 0) {
    const bool odd = device_index % 2 != 0;
    const bool second_four = device_index % 8 >= 4;
    const CoreOrder& order = second_four ? (odd ? kOrderD : kOrderC) : (odd ? kOrderB : kOrderA);
    return {order.begin(), order.end()};
  }
  std::vector<int> identity(static_cast<std::size_t>(std::clamp(physical_cores, 0, 64)));
  std::iota(identity.begin(), identity.end(), 0);
  return identity;
}

std::vector<std::vector<int>> possible_logical_to_physical(model::Family family, int device_index, int physical_cores) {
  const std::vector<int> assumed = assumed_logical_to_physical(family, device_index, physical_cores);
  const bool permuted = family == model::Family::trainium2 || family == model::Family::trainium3;
  if (!permuted || assumed.size() != 8) return {assumed};
  std::vector<int> flipped;
  for (std::size_t position = 0; position < assumed.size(); ++position) flipped.push_back(assumed[position ^ 6U]);
  return {assumed, flipped};
}

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
