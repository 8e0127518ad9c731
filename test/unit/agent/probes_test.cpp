#include "agent/metrics/endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "test/fakes/fake_clock.h"
#include "test/fakes/tcp_client.h"
#include "test/fakes/tls_client.h"

namespace neuron::metrics {
namespace {

using fakes::http_get;

const Readiness kWaiting{false, "aws.amazon.com/neuron: not registered; waiting for the kubelet\n"};
const Readiness kRegistered{true, "aws.amazon.com/neuron: registered\n"};

class ProbesTest : public ::testing::Test {
 protected:
  fakes::FakeClock clock_;
};

TEST_F(ProbesTest, ReadyIsWhatTheLoopSaidLast) {
  Probes probes(ListenAddress{"127.0.0.1", 0}, clock_);
  EXPECT_EQ(probes.answer({"/readyz", ""}).status, 503) << "before the first turn";
  probes.turn(kWaiting);
  ASSERT_TRUE(probes.port());
  EXPECT_EQ(http_get(*probes.port(), "/readyz").status, 503);
  probes.turn(kRegistered);
  const auto ready = http_get(*probes.port(), "/readyz");
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.body, "aws.amazon.com/neuron: registered\n");
  probes.turn(kWaiting);
  EXPECT_EQ(http_get(*probes.port(), "/readyz").status, 503) << "and back";
}

TEST_F(ProbesTest, TheLoopIsWellWhileItTurns) {
  Probes probes(ListenAddress{"127.0.0.1", 0}, clock_);
  probes.turn(kWaiting);
  clock_.advance(Probes::kLoopDue);
  EXPECT_EQ(http_get(*probes.port(), "/healthz").status, 200) << "not ready is well";
  clock_.advance(std::chrono::seconds(2));
  const auto stuck = http_get(*probes.port(), "/healthz");
  EXPECT_EQ(stuck.status, 503);
  EXPECT_EQ(stuck.body, "the main loop has not run for 12 s\n");
  probes.turn(kWaiting);
  EXPECT_EQ(http_get(*probes.port(), "/healthz").status, 200);
}

TEST_F(ProbesTest, OtherPathsAreNotFound) {
  Probes probes(ListenAddress{"127.0.0.1", 0}, clock_);
  probes.turn(kRegistered);
  for (const char* path : {"/metrics", "/", "/readyz/", "/healthz/x", "//readyz"}) {
    EXPECT_EQ(http_get(*probes.port(), path).status, 404) << path;
  }
}

TEST_F(ProbesTest, MetricsAreThoseOfThePage) {
  MetricsPage page({[] { return metrics::MetricsInput{}; }, [] { return std::uint64_t{0}; }}, clock_);
  Probes probes(ListenAddress{"127.0.0.1", 0}, clock_, {&page});
  probes.turn(kWaiting);
  EXPECT_EQ(http_get(*probes.port(), "/metrics").status, 200) << "ready or not";
  EXPECT_EQ(probes.answer({"/metrics", "application/openmetrics-text"}).content_type,
            metrics::content_type(metrics::TextFormat::openmetrics));
  EXPECT_EQ(http_get(*probes.port(), "/metrics/").status, 404);
}

TEST_F(ProbesTest, TheNodeIsThatOfThePage) {
  std::optional<std::string> text;
  NodePage page({[&] { return text; }, [] { return std::uint64_t{0}; }}, clock_);
  Probes probes(ListenAddress{"127.0.0.1", 0}, clock_, {.node = &page});
  probes.turn(kWaiting);
  const auto early = http_get(*probes.port(), "/node");
  EXPECT_EQ(early.status, 503);
  EXPECT_EQ(early.body, "the node has not been scanned yet\n");
  text = "{\"format\":\"neuron-ls/1\"}\n";
  const auto reply = http_get(*probes.port(), "/node");
  EXPECT_EQ(reply.status, 200) << "at once, ready or not";
  EXPECT_EQ(reply.body, *text);
  EXPECT_EQ(probes.answer({"/node", "text/html"}).content_type, "application/json");
  EXPECT_EQ(http_get(*probes.port(), "/node/").status, 404);
}

TEST_F(ProbesTest, TheNodeMayBeOff) {
  Probes probes(ListenAddress{"127.0.0.1", 0}, clock_);
  probes.turn(kRegistered);
  const auto reply = http_get(*probes.port(), "/node");
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.body, "off: --node-document\n");
}

TEST_F(ProbesTest, ACertificateThatIsNotThereIsTriedAgain) {
  const std::string directory = testing::TempDir() + "probes-tls";
  std::filesystem::remove_all(directory);
  const std::string certificate = directory + "/tls.crt";
  const std::string key = directory + "/tls.key";
  Probes probes(ListenAddress{"127.0.0.1", 0}, clock_, {}, TlsFiles{certificate, key});
  probes.turn(kRegistered);
  EXPECT_FALSE(probes.port());
  std::filesystem::create_directory(directory);
  fakes::write_certificate("node", certificate, key);
  clock_.advance(Probes::kRetry);
  probes.turn(kRegistered);
  ASSERT_TRUE(probes.port());
  EXPECT_EQ(fakes::https_get(*probes.port(), "/readyz").status, 200);
}

TEST_F(ProbesTest, APortThatIsTakenIsTriedAgain) {
  Probes first(ListenAddress{"127.0.0.1", 0}, clock_);
  first.turn(kRegistered);
  Probes second(ListenAddress{"127.0.0.1", *first.port()}, clock_);
  second.turn(kRegistered);
  EXPECT_FALSE(second.port());
  const std::uint16_t port = *first.port();
  first.stop();
  second.turn(kRegistered);
  EXPECT_FALSE(second.port()) << "not at every turn";
  clock_.advance(Probes::kRetry);
  second.turn(kRegistered);
  EXPECT_EQ(second.port(), port);
  EXPECT_EQ(http_get(port, "/readyz").status, 200);
}

TEST_F(ProbesTest, OffMeansNoSocket) {
  Probes probes(std::nullopt, clock_);
  probes.turn(kRegistered);
  EXPECT_FALSE(probes.port());
}

}  // namespace
}  // namespace neuron::metrics
