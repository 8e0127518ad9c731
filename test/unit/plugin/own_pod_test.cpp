#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "plugin/kubelet/process.h"

namespace neuron::plugin {
namespace {

struct OwnPod : testing::Test {
  void SetUp() override { TearDown(); }
  void TearDown() override {
    ::unsetenv("POD_NAME");
    ::unsetenv("KUBERNETES_SERVICE_HOST");
  }
};

TEST_F(OwnPod, IsNamedByTheVariableWithHostNetworkToo) {
  EXPECT_EQ(own_pod_name(), "");
  ::setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
  std::array<char, 256> host{};
  ASSERT_EQ(::gethostname(host.data(), host.size() - 1), 0);
  EXPECT_EQ(own_pod_name(), host.data());
  ::setenv("POD_NAME", "", 1);
  EXPECT_EQ(own_pod_name(), host.data());
  ::setenv("POD_NAME", "neuron-agent-x7k2p", 1);
  EXPECT_EQ(own_pod_name(), "neuron-agent-x7k2p");
}

}  // namespace
}  // namespace neuron::plugin
