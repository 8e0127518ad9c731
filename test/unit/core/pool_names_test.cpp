#include "agent/core/hardware.h"

#include <gtest/gtest.h>

namespace neuron::core {
namespace {

TEST(PoolNames, AreReadBackAsTheyWereMade) {
  const std::vector<std::pair<PoolName, std::string>> names = {
      {DeviceName{0}, "neuron-device-0"},
      {DeviceName{15}, "neuron-device-15"},
      {CoreName{3, 1}, "neuron-device-3-core-1"},
      {CoreName{15, 7}, "neuron-device-15-core-7"},
      {GroupName{4, 7}, "neuron-group-4-7"},
      {GroupName{10, 1}, "neuron-group-10-1"},
      {EfaName{"rdmap16s25"}, "efa-rdmap16s25"},
      {EfaName{"efa-0"}, "efa-efa-0"},
      {NodeName{}, "neuron-node"},
  };
  for (const auto& [name, text] : names) {
    EXPECT_EQ(to_string(name), text);
    EXPECT_EQ(parse_pool_name(text), name) << text;
  }
}

TEST(PoolNames, OtherTextsOfAClaimAreNoNames) {
  for (const char* text : {"",
                           "neuron",
                           "neuron-device-",
                           "neuron-device-x",
                           "neuron-device-03",
                           "neuron-device--1",
                           "neuron-device-10000",
                           "neuron-device-1-core-",
                           "neuron-device-1-core-01",
                           "neuron-device-1-core-1-core-1",
                           "neuron-device-1 ",
                           "neuron-group-",
                           "neuron-group-4",
                           "neuron-group-4-",
                           "neuron-group-4-4",
                           "neuron-group-4-7-8",
                           "neuron-nodes",
                           "neuron-node-1",
                           "efa-",
                           "efa--a",
                           "efa-a-",
                           "efa-A",
                           "efa-a_b",
                           "efa-../x",
                           "neurondevice0",
                           "efa-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                           "neuron-device-99999999999999999999"}) {
    EXPECT_FALSE(parse_pool_name(text)) << text;
  }
}

TEST(PoolNames, ARunMayGoOnBehindTheLastOfARing) {
  EXPECT_EQ(members_of({4, 7}, 16), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(members_of({10, 1}, 12), (std::vector<int>{10, 11, 0, 1}));
  EXPECT_EQ(members_of({0, 11}, 12).size(), 12U);
  EXPECT_TRUE(members_of({10, 12}, 12).empty());
  EXPECT_TRUE(members_of({3, 3}, 12).empty());
  EXPECT_TRUE(members_of({-1, 3}, 12).empty());
  EXPECT_TRUE(members_of({0, 1}, 0).empty());
}

TEST(PoolNames, AnyRdmaNameHasALabelOfItsOwn) {
  EXPECT_EQ(efa_label("rdmap16s25"), "rdmap16s25");
  EXPECT_EQ(efa_label("efa_0"), "efa-0");
  std::vector<std::string> labels;
  for (const char* name : {"efa_0", "efa-0", "EFA_0", "efa.0", "_efa_0", "", "-", "---", "\xff\n", "efa_0_",
                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    labels.push_back(efa_label(name));
    const auto name_of_it = parse_pool_name("efa-" + labels.back());
    ASSERT_TRUE(name_of_it) << name << " -> " << labels.back();
    EXPECT_EQ(*name_of_it, PoolName(EfaName{labels.back()}));
  }
  std::sort(labels.begin(), labels.end());
  EXPECT_EQ(std::adjacent_find(labels.begin(), labels.end()), labels.end());
}

}  // namespace
}  // namespace neuron::core
