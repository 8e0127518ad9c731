#include "agent/core/hardware.h"

#include <gtest/gtest.h>

namespace neuron::core {
namespace {

constexpr const char* kDriver = "neuron.aws.com";
constexpr const char* kUid = "7a0c5e3e-33b4-4d3b-8f6f-0d6d4c0a1b2c";

std::optional<ClaimAccess> access(const std::string& name, const std::string& device = "neuron-device-3") {
  const auto found = claimed_device("k8s.neuron.aws.com/claim=" + name, kDriver, device);
  return found ? std::optional(found->access) : std::nullopt;
}

TEST(ClaimCdi, AccessIsReadBackAsItWasMade) {
  for (const ClaimAccess made : {ClaimAccess::use, ClaimAccess::admin}) {
    for (const char* device : {"neuron-device-3", "neuron-device-3-core-1", "neuron-group-4-7", "efa-rdmap16s25"}) {
      const std::string id = claim_cdi_kind(kDriver) + '=' + claim_cdi_name(kUid, device, made);
      EXPECT_EQ(claimed_device(id, kDriver, device), (ClaimedDevice{made, device})) << id;
    }
  }
  EXPECT_EQ(claim_cdi_name("u", "neuron-device-3", ClaimAccess::use), "u-neuron-device-3");
  EXPECT_EQ(claim_cdi_name("u", "neuron-device-3", ClaimAccess::admin), "u-admin-neuron-device-3");
}

TEST(ClaimCdi, AShareIsNamedByItsCores) {
  const std::string share = to_string(ShareName{3, {4, 5, 6, 7, 10}});
  EXPECT_EQ(share, "neuron-device-3-share-4-7-10-10");
  EXPECT_EQ(parse_pool_name(share), PoolName(ShareName{3, {4, 5, 6, 7, 10}}));
  for (const ClaimAccess made : {ClaimAccess::use, ClaimAccess::admin}) {
    const std::string id = claim_cdi_kind(kDriver) + '=' + claim_cdi_name(kUid, share, made);
    EXPECT_EQ(claimed_device(id, kDriver, "neuron-device-3"), (ClaimedDevice{made, share}));
    EXPECT_EQ(claimed_device(id, kDriver, "neuron-device-13"), std::nullopt);
  }
  EXPECT_EQ(access("u-request-neuron-device-3-share-0-0"), std::nullopt);
  EXPECT_EQ(access("u-neuron-device-3-share-0"), std::nullopt);
  for (const char* text : {"neuron-device-3-share-", "neuron-device-3-share-1", "neuron-device-3-share-2-1",
                           "neuron-device-3-share-0-1-2-3", "neuron-device-3-share-00-1", "neuron-device-3-share-0-256",
                           "neuron-device-3-share-0-1-", "neuron-device-3-share-0--1"}) {
    EXPECT_EQ(parse_pool_name(text), std::nullopt) << text;
  }
}

TEST(ClaimCdi, OtherIdsSayNothingOfTheDevice) {
  for (const char* name : {"", "neuron-device-3", "-neuron-device-3", "u-neuron-device-13", "u-neuron-device-3-core-1",
                           "u-request-neuron-device-3", "u-request-admin-neuron-device-3", "uneuron-device-3"}) {
    EXPECT_EQ(access(name), std::nullopt) << name;
  }
  EXPECT_EQ(access("u-x", ""), std::nullopt);
  EXPECT_EQ(claimed_device("k8s.other.aws.com/claim=u-admin-neuron-device-3", kDriver, "neuron-device-3"),
            std::nullopt);
  EXPECT_EQ(claimed_device("neuron-device-3", kDriver, "neuron-device-3"), std::nullopt);
}

}  // namespace
}  // namespace neuron::core
