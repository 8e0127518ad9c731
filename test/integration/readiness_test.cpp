// Readiness as the kubelet's probe asks for it: /readyz of the real agent, beside a kubelet that comes, goes and
// refuses.
#include "test/fakes/tcp_client.h"
#include "test/integration/metrics_port.h"
#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using testing::HasSubstr;

// Asks until the status is `want`; the last answer.
HttpReply await_ready(Node& node, std::uint16_t port, int want) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const HttpReply reply = http_get(port, "/readyz");
    if (reply.status == want || std::chrono::steady_clock::now() > until) return reply;
    static_cast<void>(node.agent->wait(std::chrono::milliseconds(5)));
  }
}

class ReadinessTest : public ::testing::Test {
 protected:
  explicit ReadinessTest() { node_.extra_arguments = {"--metrics-address", "127.0.0.1:0"}; }
  Node node_{"trn1.32xlarge"};
};

TEST_F(ReadinessTest, ReadyOnceTheKubeletTookEveryResource) {
  node_.host.write();
  node_.start_agent();  // no kubelet yet
  const std::uint16_t port = metrics_port(node_);
  ASSERT_TRUE(node_.wait_log("kubelet directory unavailable"));
  ASSERT_EQ(await_ready(node_, port, 503).status, 503);
  EXPECT_EQ(http_get(port, "/healthz").status, 200) << "waiting is well";
  node_.start_kubelet();
  const HttpReply ready = await_ready(node_, port, 200);
  EXPECT_EQ(ready.status, 200) << ready.body << node_.agent->log();
  EXPECT_EQ(ready.body,
            "aws.amazon.com/neuroncore: registered\n"
            "aws.amazon.com/neuron: registered\n"
            "vpc.amazonaws.com/efa: registered\n");
  for (const char* resource : {kNeuron, kCore, kEfa}) {
    EXPECT_EQ(node_.kubelet->registrations(resource), 1) << resource;
    const auto connected = [&] { return node_.kubelet->resource_view(resource).connected; };  // when it has the list
    EXPECT_TRUE(node_.kubelet->wait_for(connected, kPatience)) << resource;
  }
  EXPECT_EQ(http_get(port, "/metrics").status, 200);
}

TEST_F(ReadinessTest, NotReadyWhileTheKubeletRefuses) {
  fakes::FakeKubeletOptions options;
  options.faults.registration = fakes::RegisterFault::error;
  node_.host.write();
  node_.start_kubelet(options).start_agent();
  const std::uint16_t port = metrics_port(node_);
  ASSERT_TRUE(node_.wait_log("registration failed, retrying"));
  const HttpReply refused = http_get(port, "/readyz");
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("aws.amazon.com/neuron: "));
  ASSERT_TRUE(node_.kubelet->set_faults({}));
  EXPECT_EQ(await_ready(node_, port, 200).status, 200) << node_.agent->log();
}

TEST_F(ReadinessTest, NotReadyWhileTheKubeletIsDownAndReadyAgainAfterwards) {
  node_.start();
  const std::uint16_t port = metrics_port(node_);
  ASSERT_EQ(await_ready(node_, port, 200).status, 200) << node_.agent->log();
  node_.kubelet->go_down();
  const HttpReply down = await_ready(node_, port, 503);
  EXPECT_EQ(down.status, 503) << node_.agent->log();
  EXPECT_THAT(down.body, HasSubstr(": not registered"));
  EXPECT_EQ(http_get(port, "/healthz").status, 200);
  ASSERT_TRUE(node_.kubelet->come_up());
  EXPECT_EQ(await_ready(node_, port, 200).status, 200) << node_.agent->log();
  EXPECT_GE(node_.kubelet->registrations(kNeuron), 1);
}

TEST_F(ReadinessTest, ReadyWithDevicesThatAreUnhealthy) {
  node_.host.write();
  node_.host.set("neuron0", "stats/hardware/sram_ecc_uncorrected=1");
  node_.start_kubelet().start_agent();
  EXPECT_EQ(await_ready(node_, metrics_port(node_), 200).status, 200) << node_.agent->log();
  EXPECT_TRUE(node_.wait_allocatable(kNeuron, 15)) << node_.agent->log();
}

TEST_F(ReadinessTest, ReadyWhereThereIsNothingToOffer) {
  node_.start_kubelet().start_agent();  // the host's directory is empty
  const HttpReply ready = await_ready(node_, metrics_port(node_), 200);
  EXPECT_EQ(ready.status, 200) << node_.agent->log();
  EXPECT_EQ(ready.body, "nothing to offer on this node\n");
}

TEST_F(ReadinessTest, APortThatIsTakenKeepsNothingFromBeingServed) {
  node_.start();
  const std::uint16_t port = metrics_port(node_);
  ASSERT_EQ(await_ready(node_, port, 200).status, 200);
  Node other("trn1.2xlarge");
  other.extra_arguments = {"--metrics-address", "127.0.0.1:" + std::to_string(port)};
  other.start();
  EXPECT_TRUE(other.wait_allocatable(kNeuron, 1)) << other.agent->log();
  EXPECT_TRUE(other.wait_log("devices are served anyway")) << other.agent->log();
  node_.agent->signal(SIGTERM);
  ASSERT_EQ(node_.agent->wait(kPatience), 0);
  EXPECT_EQ(metrics_port(other), port) << "taken over once it is free";
  EXPECT_EQ(await_ready(other, port, 200).status, 200) << other.agent->log();
}

TEST_F(ReadinessTest, ClientsThatDoNotGoHoldUpNoEnd) {
  node_.start();
  const std::uint16_t port = metrics_port(node_);
  ASSERT_EQ(await_ready(node_, port, 200).status, 200);
  TcpClient half(port);
  half.send("GET /readyz HTTP");
  const auto asked = std::chrono::steady_clock::now();
  node_.agent->signal(SIGTERM);
  EXPECT_EQ(node_.agent->wait(kPatience), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - asked, std::chrono::seconds(2));
}

TEST(Readiness, AnAddressThatIsNoneIsAUsageError) {
  Node node("trn1.2xlarge");
  node.host.write();
  node.extra_arguments = {"--metrics-address", "localhost:8000"};
  node.start_agent();
  EXPECT_EQ(node.agent->wait(kPatience), 2);
  EXPECT_TRUE(node.wait_log("use HOST:PORT")) << node.agent->log();
}

TEST(Readiness, OffIsTheDefault) {
  Node node("trn1.2xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 1));
  EXPECT_TRUE(node.wait_log("metrics-address=off")) << node.agent->log();
  EXPECT_THAT(node.agent->log(), testing::Not(HasSubstr("probe server listening")));
}

}  // namespace
}  // namespace neuron::fakes
