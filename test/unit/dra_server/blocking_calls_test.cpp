// What the server's test cannot reach: bounds, and calls after the end. The reactors are gRPC's, so a server carries
// them.
#include "plugin/dra/serve/driver.h"
#include "test/unit/dra_server/server_fixture.h"

namespace neuron::plugin::dra {
namespace {

using fakes::FakeDraKubelet;

struct BlockingCallsTest : ServerFixture {};

TEST_F(BlockingCallsTest, BeyondTheirNumberCallsAreRefusedAndAnsweredAgainLater) {
  std::filesystem::create_directories(claims_dir());
  const auto server = DraServer::start(*socket_names(kubelet_dir, kDriver, ""), kDriver,
                                       {claims, health, workers, [](const RegistrationResult&) {}});
  ASSERT_TRUE(server);
  const FakeDraKubelet kubelet(kubelet_dir);
  ASSERT_TRUE(kubelet.wait_for([&] { return kubelet.taken(kDriver) == 1; }, kPatience));
  claims.hang_on("slow");
  std::vector<std::jthread> slow;
  for (std::size_t i = 0; i < DraServer::kMostCalls; ++i) {
    slow.emplace_back([&, i] { static_cast<void>(kubelet.prepare(kDriver, one("slow", "u-" + std::to_string(i)))); });
  }
  ASSERT_TRUE(kubelet.wait_for([&] { return (*server)->calls() == DraServer::kMostCalls; }, kPatience));
  EXPECT_EQ(kubelet.prepare(kDriver, one("quick", "q")).status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  claims.let_go();
  slow.clear();
  EXPECT_TRUE(kubelet.prepare(kDriver, one("quick", "q")).status.ok());
}

}  // namespace
}  // namespace neuron::plugin::dra
