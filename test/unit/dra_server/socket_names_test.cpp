#include "plugin/dra/socket_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/un.h>

namespace neuron::plugin::dra {
namespace {

constexpr const char* kUid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

TEST(SocketNames, AreThoseThatTheKubeletsOwnHelperGives) {
  const auto names = socket_names("/var/lib/kubelet", "neuron.aws.com", kUid);
  ASSERT_TRUE(names);
  EXPECT_EQ(names->claims_path(), "/var/lib/kubelet/plugins/neuron.aws.com/dra-" + std::string(kUid) + ".sock");
  EXPECT_EQ(names->registration_path(),
            "/var/lib/kubelet/plugins_registry/neuron.aws.com-" + std::string(kUid) + "-reg.sock");
  const auto single = socket_names("/var/lib/kubelet", "neuron.aws.com", "");
  EXPECT_EQ(single->claims, "dra.sock");
  EXPECT_EQ(single->registration, "neuron.aws.com-reg.sock");
}

TEST(SocketNames, LongNamesAreHashedUntilTheyFit) {
  const std::string driver(63, 'd');
  const auto short_uid = socket_names("/var/lib/kubelet", driver, kUid);
  ASSERT_TRUE(short_uid);
  EXPECT_THAT(short_uid->claims, testing::MatchesRegex("dra-[0-9a-f]*.sock"));
  EXPECT_THAT(short_uid->registration, testing::MatchesRegex("dra-[0-9a-f]*-reg.sock"));
  EXPECT_THAT(socket_names("/var/lib/kubelet", std::string(40, 'd'), kUid)->registration,
              testing::MatchesRegex("d*-[0-9a-f]*-reg.sock"));
  const auto other = socket_names("/var/lib/kubelet", driver, "another");
  EXPECT_NE(short_uid->registration, other->registration);
  for (std::size_t length = 1; length < 100; ++length) {
    const auto names = socket_names("/" + std::string(length, 'k'), "neuron.aws.com", kUid);
    if (!names) {
      EXPECT_EQ(names.error().code, ErrorCode::invalid_argument);
      continue;
    }
    EXPECT_LT(names->claims_path().size(), sizeof(sockaddr_un::sun_path));
    EXPECT_LT(names->registration_path().size(), sizeof(sockaddr_un::sun_path));
  }
}

TEST(SocketNames, OwnOnesAreToldFromOthers) {
  EXPECT_TRUE(is_claims_socket("dra.sock"));
  EXPECT_TRUE(is_claims_socket("dra-1.sock"));
  EXPECT_FALSE(is_claims_socket("claims.json"));
  EXPECT_FALSE(is_claims_socket("drawer.sock"));
  EXPECT_TRUE(is_registration_socket("neuron.aws.com-1-reg.sock", "neuron.aws.com"));
  EXPECT_TRUE(is_registration_socket("neuron.aws.com-reg.sock", "neuron.aws.com"));
  EXPECT_FALSE(is_registration_socket("neuron.aws.company-reg.sock", "neuron.aws.com"));
  EXPECT_FALSE(is_registration_socket("gpu.nvidia.com-reg.sock", "neuron.aws.com"));
}

}  // namespace
}  // namespace neuron::plugin::dra
