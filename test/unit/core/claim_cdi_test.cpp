#include "agent/core/hardware.h"

#include <gtest/gtest.h>

namespace neuron::core {
namespace {

constexpr const char* kDriver = "neuron.aws.com";
constexpr const char* kUid = "7a0c5e3e-33b4-4d3b-8f6f-0d6d4c0a1b2c";

std::optional<ClaimAccess> access(const std::string& name, const std::string& device = "neuron-device-3") {
  return claim_access("k8s.neuron.aws.com/claim=" + name, kDriver, device);
}

TEST(ClaimCdi, AccessIsReadBackAsItWasMade) {
  for (const ClaimAccess made : {ClaimAccess::use, ClaimAccess::admin}) {
    for (const char* device : {"neuron-device-3", "neuron-device-3-core-1", "neuron-group-4-7", "efa-rdmap16s25"}) {
      const std::string id = claim_cdi_kind(kDriver) + '=' + claim_cdi_name(kUid, device, made);
      EXPECT_EQ(claim_access(id, kDriver, device), made) << id;
    }
  }
  EXPECT_EQ(claim_cdi_name("u", "neuron-device-3", ClaimAccess::use), "u-neuron-device-3");
  EXPECT_EQ(claim_cdi_name("u", "neuron-device-3", ClaimAccess::admin), "u-admin-neuron-device-3");
}

TEST(ClaimCdi, OtherIdsSayNothingOfTheDevice) {
  for (const char* name : {"", "neuron-device-3", "-neuron-device-3", "u-neuron-device-13", "u-neuron-device-3-core-1",
                           "u-request-neuron-device-3", "u-request-admin-neuron-device-3", "uneuron-device-3"}) {
    EXPECT_EQ(access(name), std::nullopt) << name;
  }
  EXPECT_EQ(access("u-x", ""), std::nullopt);
  EXPECT_EQ(claim_access("k8s.other.aws.com/claim=u-admin-neuron-device-3", kDriver, "neuron-device-3"), std::nullopt);
  EXPECT_EQ(claim_access("neuron-device-3", kDriver, "neuron-device-3"), std::nullopt);
}

}  // namespace
}  // namespace neuron::core
