#include "plugin/dra/serve/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>

#include "agent/base/fd.h"

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

// A socket file; listening as long as the descriptor is open.
Fd make_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << path;
  EXPECT_EQ(::listen(socket.get(), 1), 0);
  return socket;
}

TEST(SocketNames, WhatAKilledInstanceLeftIsRemovedAndNothingElse) {
  std::string kubelet_dir = "/tmp/drasocketsXXXXXX";
  ASSERT_NE(::mkdtemp(kubelet_dir.data()), nullptr);
  const auto own = *socket_names(kubelet_dir, "neuron.aws.com", "own");
  std::filesystem::create_directories(own.claims_dir);
  std::filesystem::create_directories(own.registry_dir);
  const std::string dead_claims = own.claims_dir + "/dra-dead.sock";
  const std::string dead_registration = own.registry_dir + "/neuron.aws.com-dead-reg.sock";
  const std::vector<std::string> stay_dead = {own.claims_path(), own.registration_path(),
                                              own.registry_dir + "/gpu-reg.sock", own.claims_dir + "/other.sock"};
  for (const std::string& path : stay_dead) make_socket(path);
  for (const std::string& path : {dead_claims, dead_registration}) make_socket(path);
  const Fd alive = make_socket(own.claims_dir + "/dra-alive.sock");
  std::ofstream(own.claims_dir + "/dra-file.sock") << "no socket";
  EXPECT_EQ(remove_dead_sockets(own, "neuron.aws.com"), 0) << "all are young";
  EXPECT_EQ(remove_dead_sockets(own, "neuron.aws.com", std::chrono::seconds(-10)), 2);
  EXPECT_FALSE(std::filesystem::exists(dead_claims));
  EXPECT_FALSE(std::filesystem::exists(dead_registration));
  for (const std::string& path : stay_dead) EXPECT_TRUE(std::filesystem::exists(path)) << path;
  EXPECT_TRUE(std::filesystem::exists(own.claims_dir + "/dra-alive.sock"));
  EXPECT_TRUE(std::filesystem::exists(own.claims_dir + "/dra-file.sock"));
  std::filesystem::remove_all(kubelet_dir);
}

}  // namespace
}  // namespace neuron::plugin::dra
