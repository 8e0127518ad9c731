#include "agent/core/catalogue.h"

#include <gtest/gtest.h>

#include <set>

namespace neuron::core {
namespace {

DeviceGroupIds ids_of(const char* type, int device) {
  return device_group_ids(*find_instance_type(type), device).value();
}

// docs/reference/topology.md#device-groups; the last four, eight and sixteen were seen in a slice of AWS's driver.
TEST(DeviceGroups, IdsOfTrn1AreThoseOfAwsLibrary) {
  const char* fours[] = {"88a3c6ad1661fe1d", "69b2225fd72a59dd", "e3c29faa0cd11323", "178a9e264a26793e"};
  const char* eights[] = {"86c451036f622685", "aa86c05423d6e8cd"};
  for (int device = 0; device < 16; ++device) {
    const DeviceGroupIds ids = ids_of("trn1.32xlarge", device);
    EXPECT_EQ(ids.of4, fours[device / 4]) << device;
    EXPECT_EQ(ids.of8, eights[device / 8]) << device;
    EXPECT_EQ(ids.of16, "fb838249c99a6341") << device;
  }
  EXPECT_EQ(ids_of("trn1.32xlarge", 0).of1, "0000:10:1a.0");
  EXPECT_EQ(ids_of("trn1.32xlarge", 15).of1, "0000:a0:19.0");
}

TEST(DeviceGroups, AnInterfaceHasTheIdsOfItsDevices) {
  for (const InstanceType& type : all_instance_types()) {
    for (int device = 0; device < type.device_count; ++device) {
      const auto& nearest = type.devices[static_cast<std::size_t>(device)].nearest_efa;
      const auto ids = device_group_ids(type, device);
      ASSERT_EQ(ids.has_value(), nearest.has_value()) << type.name << " " << device;
      if (!nearest) continue;
      EXPECT_EQ(device_group_ids(type, *nearest), ids) << type.name << " " << device;
    }
  }
  EXPECT_FALSE(device_group_ids(*find_instance_type("trn1.32xlarge"), model::Bdf{0, 0x10, 0x18, 0}));
}

TEST(DeviceGroups, OnlyTypesWithATableHaveIds) {
  std::set<std::string> with_ids;
  for (const InstanceType& type : all_instance_types()) {
    if (device_group_ids(type, 0)) with_ids.insert(type.name);
  }
  EXPECT_EQ(with_ids, (std::set<std::string>{"trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2e.48xlarge",
                                             "trn2u.48xlarge", "trn3.48xlarge", "trn3p.48xlarge", "trn3pd98.48xlarge",
                                             "trn3s.48xlarge", "trn3-dev0.48xlarge", "trn3-dev1.48xlarge"}));
  EXPECT_FALSE(device_group_ids(*find_instance_type("trn1.32xlarge"), -1));
  EXPECT_FALSE(device_group_ids(*find_instance_type("trn1.32xlarge"), 16));
}

}  // namespace
}  // namespace neuron::core
