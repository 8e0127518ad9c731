#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agent/base/workers.h"
#include "plugin/dra/serve/node_board.h"
#include "test/fakes/fake_dra_kubelet.h"
#include "test/unit/dra_server/fake_claims.h"

namespace neuron::plugin::dra {

inline constexpr const char* kDriver = "neuron.aws.com";
inline constexpr std::chrono::seconds kPatience{20};  // a deadline for waits, never a duration that is slept

// A kubelet's directory, and what a driver needs besides.
struct ServerFixture : testing::Test {
  std::string kubelet_dir = "/tmp/drakubeletXXXXXX";  // short: paths of sockets are
  FakeClaims claims;
  HealthHub health;
  Workers workers;

  void SetUp() override {
    ASSERT_NE(::mkdtemp(kubelet_dir.data()), nullptr);
    std::filesystem::create_directories(registry());
  }
  void TearDown() override { std::filesystem::remove_all(kubelet_dir); }

  [[nodiscard]] std::string registry() const { return kubelet_dir + "/plugins_registry"; }
  [[nodiscard]] std::string claims_dir() const { return kubelet_dir + "/plugins/" + kDriver; }
  void publish(const std::string& device, DeviceHealth::State state, const std::string& message = "") {
    health.publish(std::make_shared<const HealthList>(HealthList{"node-1", {{device, state, message}}}));
  }
  static std::vector<fakes::FakeDraKubelet::Claim> one(const std::string& name, const std::string& uid) {
    return {{"team", name, uid}};
  }
};

}  // namespace neuron::plugin::dra
