// Two instances on one node, as the update of the DaemonSet has them (docs/upgrade.md): the next one waits, Ready, and
// serves once the last one ends.
#include <optional>

#include "test/fakes/tcp_client.h"
#include "test/integration/metrics_port.h"
#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using std::chrono::steady_clock;

struct TakeOver : testing::Test {
  Node node{"trn1.32xlarge"};

  void SetUp() override {
    node.extra_arguments = {"--take-over", "--metrics-address", "127.0.0.1:0"};
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    ASSERT_TRUE(node.run("holder", {{kNeuron, 1}}));
    ASSERT_TRUE(node.wait_allocatable(kCore, 30));
    next.emplace(node.arguments(), node.kubelet_dir + "/next.log");
    ASSERT_TRUE(wait_log(*next, "waiting to take over: another neuron-agent (pid "));
  }
  void TearDown() override { next.reset(); }

  std::optional<AgentProcess> next;

  // How long the kubelet had no unit of a resource, until all are back.
  std::optional<std::chrono::milliseconds> gap_of(const std::string& resource, int units, int registrations) {
    std::optional<steady_clock::time_point> gone;
    const bool is_back = node.kubelet->wait_for(
        [&] {
          const int now = node.kubelet->allocatable(resource);
          if (now == 0 && !gone) gone = steady_clock::now();
          return now == units && node.kubelet->registrations(resource) >= registrations;
        },
        kPatience);
    if (!is_back) return std::nullopt;
    return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() -
                                                                 gone.value_or(steady_clock::now()));
  }
};

TEST_F(TakeOver, TheNextInstanceIsReadyAndServesOnceTheLastOneEnds) {
  const std::uint16_t port = metrics_port(*next);
  HttpReply ready = http_get(port, "/readyz");
  for (const auto until = steady_clock::now() + kPatience; ready.status != 200 && steady_clock::now() < until;) {
    static_cast<void>(next->wait(std::chrono::milliseconds(5)));  // for its first scan
    ready = http_get(port, "/readyz");
  }
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.body, "another agent serves this node; waiting for its end\n");
  EXPECT_EQ(node.kubelet->registrations(kNeuron), 1) << "the last one serves undisturbed";
  node.agent->signal(SIGTERM);
  const auto gap = gap_of(kNeuron, 16, 2);
  ASSERT_TRUE(gap) << next->log();
  RecordProperty("gap_ms", static_cast<int>(gap->count()));
  EXPECT_EQ(node.agent->wait(kPatience), 0);
  EXPECT_TRUE(node.wait_allocatable(kCore, 30)) << "what is held is known\n" << next->log();
  EXPECT_TRUE(node.wait_allocatable(kEfa, 8)) << next->log();
  EXPECT_TRUE(wait_log(*next, "took over dir="));
  EXPECT_TRUE(node.run("after", {{kCore, 2}}));
  EXPECT_EQ(http_get(port, "/readyz").status, 200);
}

TEST_F(TakeOver, OneThatIsKilledIsFollowedToo) {
  node.agent->signal(SIGKILL);
  EXPECT_TRUE(gap_of(kNeuron, 16, 2)) << next->log();
  EXPECT_TRUE(node.wait_allocatable(kCore, 30)) << next->log();
}

TEST_F(TakeOver, OneThatWaitsEndsAtOnceAndChangesNothing) {
  const auto asked = steady_clock::now();
  next->signal(SIGTERM);
  EXPECT_EQ(next->wait(kPatience), 0) << next->log();
  EXPECT_LT(steady_clock::now() - asked, std::chrono::seconds(2));
  EXPECT_TRUE(node.agent->running());
  EXPECT_EQ(node.kubelet->registrations(kNeuron), 1);
  EXPECT_EQ(node.kubelet->allocatable(kNeuron), 16);
}

// A kubelet's restart, in which the directory is wiped, lets neither take over.
TEST_F(TakeOver, AKubeletThatRestartsKeepsTheInstanceThatServes) {
  ASSERT_TRUE(node.kubelet->restart());
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 16)) << node.agent->log();
  EXPECT_TRUE(next->running());
  node.agent->signal(SIGTERM);
  EXPECT_TRUE(gap_of(kNeuron, 16, 2)) << next->log();
}

}  // namespace
}  // namespace neuron::fakes
