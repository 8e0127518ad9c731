#pragma once

#include <gtest/gtest.h>

#include <set>

#include "plugin/dra/slices/pool.h"

namespace neuron::plugin::dra {

// What the API server refuses, and what makes a pool invalid for the scheduler (docs/reference/dra.md#limits).
inline void expect_valid_label(const std::string& label) {
  EXPECT_TRUE(!label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
              label.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos)
      << label;
}

inline void expect_valid_attributes(const PoolDevice& device) {
  EXPECT_LE(device.attributes.size() + device.capacity.size(), 32U) << device.name;
  for (const auto& [name, value] : device.attributes) {
    const std::size_t slash = name.find('/');
    const std::string id = slash == std::string::npos ? name : name.substr(slash + 1);
    EXPECT_TRUE(!id.empty() && id.size() <= 32) << name;
    EXPECT_LE(slash == std::string::npos ? 0 : slash, 63U) << name;
    EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"),
              std::string::npos)
        << name;
    const auto* text = std::get_if<std::string>(&value);
    EXPECT_LE(text != nullptr ? text->size() : 0, 64U) << name;
  }
}

inline void expect_within_limits(const std::vector<SliceContent>& slices, SliceShape shape) {
  Counters counters;
  std::set<std::string> names;
  expect_valid_label(kCounterSet);
  for (const SliceContent& slice : slices) {
    const bool both = !slice.counters.empty() && !slice.devices.empty();
    EXPECT_FALSE(both && shape != SliceShape::combined);
    EXPECT_LE(slice.devices.size(), both ? 128U : 64U);
    EXPECT_TRUE(!slice.counters.empty() || !slice.devices.empty());
    EXPECT_TRUE(slice.counters.empty() || counters.empty()) << "one set of that name";
    EXPECT_LE(slice.counters.size(), 32U);
    for (const auto& [counter, value] : slice.counters) {
      expect_valid_label(counter);
      counters.emplace(counter, value);
    }
  }
  for (const SliceContent& slice : slices) {
    std::size_t uses = 0;
    for (const PoolDevice& device : slice.devices) {
      EXPECT_TRUE(names.insert(device.name).second) << device.name << " twice";
      expect_valid_label(device.name);
      expect_valid_attributes(device);
      EXPECT_LE(device.taints.size(), 4U);
      EXPECT_LE(device.consumes.size(), 32U);
      uses += device.consumes.size();
      EXPECT_TRUE(device.consumes.empty() || shape != SliceShape::combined || !slice.counters.empty()) << device.name;
      for (const auto& [counter, value] : device.consumes) {
        ASSERT_TRUE(counters.contains(counter)) << device.name << " " << counter;
        EXPECT_LE(value, counters.at(counter));
      }
    }
    EXPECT_LE(shape == SliceShape::combined ? uses : 0, 1024U);
  }
}

}  // namespace neuron::plugin::dra
