#pragma once

#include <optional>
#include <string>

#include "agent/core/catalogue.h"

namespace neuron::core {

// Ids by which AWS's drivers align devices and interfaces: who has the same id is in the same aligned group of 1, 4, 8
// or 16 devices (docs/reference/topology.md#device-groups). Values of resource.aws.com/devicegroup<N>_id.
struct DeviceGroupIds {
  std::string of1;   // the address of the nearest interface: "0000:10:1a.0"
  std::string of4;   // 16 hexadecimal digits
  std::string of8;   // the same
  std::string of16;  // the same
  friend bool operator==(const DeviceGroupIds&, const DeviceGroupIds&) = default;
};

// Of a device by its index; nullopt where AWS has no table for the type, or the index is not in it. Pure.
[[nodiscard]] std::optional<DeviceGroupIds> device_group_ids(const InstanceType& type, int device);

// Of an interface: those of a device that it is the nearest of; nullopt: of none. Pure.
[[nodiscard]] std::optional<DeviceGroupIds> device_group_ids(const InstanceType& type, const model::Bdf& efa);

}  // namespace neuron::core
