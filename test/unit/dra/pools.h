#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plugin/dra/slices/pool.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin::dra {

inline PoolOptions with_partitions(Partitions partitions) {
  PoolOptions options;
  options.shares = Shares::off;
  options.partitions = partitions;
  return options;
}

// Nodes of catalogue types, well and ill, and their pools.
struct TestNode {
  explicit TestNode(const std::string& type, int lnc = 0) : snapshot(snapshot_of(type)) {
    if (lnc > 0) snapshot->host.lnc = {lnc, model::Origin::live};
    snapshot->host.driver_version = "2.30.2.0";
  }
  [[nodiscard]] model::NeuronDevice& device(int index) {
    for (model::NeuronDevice& device : snapshot->host.devices) {
      if (device.index == index) return device;
    }
    ADD_FAILURE() << "no device " << index;
    return snapshot->host.devices.front();
  }
  void make_ill(int index, const std::string& reason = "sram_ecc_uncorrected") {
    device(index).health = {model::HealthState::unhealthy, reason, "a sentence", ""};
    device(index).core_health.clear();
  }
  void take_away(int index) {
    std::erase_if(snapshot->host.devices, [&](const auto& device) { return device.index == index; });
  }
  [[nodiscard]] grant::NodeUnits units() const { return grant::NodeUnits(snapshot); }
  // With all partitions, unless `options` say otherwise.
  [[nodiscard]] Pool pool(const PoolOptions& options = with_partitions(Partitions::all),
                          const std::vector<std::string>& held = {}) const {
    return make_pool(units(), options, held);
  }
  [[nodiscard]] Pool pool_with_held(const std::vector<std::string>& held) const {
    return pool(with_partitions(Partitions::all), held);
  }

  std::shared_ptr<model::Snapshot> snapshot;
};

inline std::vector<std::string> names_of(const Pool& pool, DeviceKind kind) {
  std::vector<std::string> names;
  for (const PoolDevice& device : pool.devices) {
    if (device.kind == kind) names.push_back(device.name);
  }
  return names;
}

inline const PoolDevice& find(const Pool& pool, const std::string& name) {
  for (const PoolDevice& device : pool.devices) {
    if (device.name == name) return device;
  }
  ADD_FAILURE() << "no " << name << " in the pool";
  static const PoolDevice none;
  return none;
}

inline bool has(const Pool& pool, const std::string& name) {
  return std::any_of(pool.devices.begin(), pool.devices.end(), [&](const auto& device) { return device.name == name; });
}

template <typename T>
T value_of(const PoolDevice& device, const std::string& name) {
  const auto found = device.attributes.find(name);
  if (found != device.attributes.end()) {
    if (const T* value = std::get_if<T>(&found->second)) return *value;
  }
  ADD_FAILURE() << device.name << " has no such " << name;
  return T{};
}

}  // namespace neuron::plugin::dra
