#include "plugin/dra/serve/driver.h"

#include "test/unit/dra_server/server_fixture.h"

namespace neuron::plugin::dra {
namespace {

using fakes::FakeDraKubelet;
using testing::ElementsAre;
using testing::HasSubstr;

struct DraServerTest : ServerFixture {
  std::atomic<int> taken = 0;
  std::string refused;
  std::unique_ptr<DraServer> server;

  void serve(const std::string& uid = "uid-1") {
    std::filesystem::create_directories(claims_dir());
    auto started = DraServer::start(*socket_names(kubelet_dir, kDriver, uid), kDriver,
                                    {claims, health, workers, [this](const RegistrationResult& news) {
                                       if (news.registered) ++taken;
                                     }});
    ASSERT_TRUE(started) << started.error().message;
    server = *std::move(started);
  }
  void await(const FakeDraKubelet& kubelet) {
    ASSERT_TRUE(kubelet.wait_for([&] { return kubelet.taken(kDriver) == 1 && taken == 1; }, kPatience));
  }
};

TEST_F(DraServerTest, TellsTheKubeletWhoItIsAndWhereInItsOrder) {
  serve();
  const FakeDraKubelet kubelet(kubelet_dir);
  await(kubelet);
  const auto plugin = kubelet.plugin(kDriver);
  EXPECT_EQ(plugin->endpoint, claims_dir() + "/dra-uid-1.sock");
  EXPECT_THAT(plugin->offered,
              ElementsAre("v1.DRAPlugin", "v1beta1.DRAPlugin", "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"));
  EXPECT_EQ(plugin->version, "v1.DRAPlugin");
}

TEST_F(DraServerTest, PreparesAndUnpreparesInBothVersions) {
  serve();
  for (const char* version : {"v1.DRAPlugin", "v1beta1.DRAPlugin"}) {
    taken = 0;
    FakeDraKubelet::Options options;
    options.knows = {version};
    const FakeDraKubelet kubelet(kubelet_dir, options);
    await(kubelet);
    const auto prepared = kubelet.prepare(kDriver, {{"team", "train", "u-1"}, {"team", "no/name", "u-2"}});
    ASSERT_TRUE(prepared.status.ok()) << prepared.status.error_message();
    ASSERT_EQ(prepared.claims.size(), 2U) << version;
    const auto& device = prepared.claims.at("u-1").devices.at(0);
    EXPECT_THAT(device.requests, ElementsAre("chips"));
    EXPECT_EQ(device.pool, "node-1");
    EXPECT_EQ(device.device, "neuron-device-0");
    EXPECT_THAT(device.cdi_ids, ElementsAre("vendor/class=u-1"));
    EXPECT_THAT(prepared.claims.at("u-2").error, HasSubstr("no/name"));
    const auto unprepared = kubelet.unprepare(kDriver, one("train", "u-1"));
    ASSERT_TRUE(unprepared.status.ok());
    EXPECT_EQ(unprepared.claims.at("u-1").error, "");
    EXPECT_TRUE(claims.prepared().empty());
  }
}

TEST_F(DraServerTest, AClaimThatWaitsHoldsUpNoOther) {
  serve();
  const FakeDraKubelet kubelet(kubelet_dir);
  await(kubelet);
  claims.hang_on("slow");
  std::jthread slow([&] { static_cast<void>(kubelet.prepare(kDriver, one("slow", "u-1"))); });
  ASSERT_TRUE(claims.wait_until_hanging());
  const auto quick = kubelet.prepare(kDriver, one("quick", "u-2"), kPatience);
  EXPECT_TRUE(quick.status.ok()) << quick.status.error_message();
  claims.let_go();
}

TEST_F(DraServerTest, ACallThatIsCancelledStopsWhatItWaitsFor) {
  serve();
  const FakeDraKubelet kubelet(kubelet_dir);
  await(kubelet);
  claims.hang_on("slow");
  const auto late = kubelet.prepare(kDriver, one("slow", "u-1"), std::chrono::milliseconds(200));
  EXPECT_EQ(late.status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  ASSERT_TRUE(kubelet.wait_for([&] { return server->calls() == 0; }, kPatience));
  EXPECT_TRUE(claims.prepared().empty());
}

TEST_F(DraServerTest, HealthIsToldAtOnceOnChangeAndAgainWhenAsked) {
  publish("neuron-device-0", DeviceHealth::State::healthy);
  serve();
  const FakeDraKubelet kubelet(kubelet_dir);
  const auto shows = [&](v1alpha1::HealthStatus status, const std::string& message) {
    const auto seen = kubelet.health();
    const auto found = seen.find("node-1/neuron-device-0");
    return found != seen.end() && found->second.status == status && found->second.message == message;
  };
  ASSERT_TRUE(kubelet.wait_for([&] { return shows(v1alpha1::HEALTHY, ""); }, kPatience));
  publish("neuron-device-0", DeviceHealth::State::unhealthy, "3 errors; replace the instance");
  ASSERT_TRUE(
      kubelet.wait_for([&] { return shows(v1alpha1::UNHEALTHY, "3 errors; replace the instance"); }, kPatience));
  const int messages = kubelet.health_messages();
  health.repeat();
  EXPECT_TRUE(kubelet.wait_for([&] { return kubelet.health_messages() > messages; }, kPatience));
  publish("neuron-device-0", DeviceHealth::State::unknown);
  EXPECT_TRUE(kubelet.wait_for([&] { return shows(v1alpha1::UNKNOWN, ""); }, kPatience));
}

// Kubelets from 1.37 ask for v1, older ones for v1alpha1; both say the same.
TEST_F(DraServerTest, HealthIsToldInBothVersions) {
  publish("neuron-device-0", DeviceHealth::State::unhealthy, "3 errors");
  serve();
  for (const char* version : {"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"}) {
    FakeDraKubelet::Options options;
    if (version == std::string("v1alpha1.DRAResourceHealth")) options.knows_health = {version};
    const FakeDraKubelet kubelet(kubelet_dir, options);
    ASSERT_TRUE(kubelet.wait_for([&] { return kubelet.health_messages() > 0; }, kPatience)) << version;
    EXPECT_EQ(kubelet.plugin(kDriver)->health_version, version);
    EXPECT_EQ(kubelet.health().at("node-1/neuron-device-0").status, v1alpha1::UNHEALTHY) << version;
    EXPECT_EQ(kubelet.health().at("node-1/neuron-device-0").message, "3 errors") << version;
  }
}

TEST_F(DraServerTest, EndsInTimeWithAStreamOpenAndACallThatDoesNotListen) {
  publish("neuron-device-0", DeviceHealth::State::healthy);
  serve();
  const FakeDraKubelet kubelet(kubelet_dir);
  await(kubelet);
  ASSERT_TRUE(kubelet.wait_for([&] { return kubelet.health_messages() > 0; }, kPatience));
  claims.ignore_stop = true;
  claims.hang_on("stuck");
  grpc::Status ended;
  std::jthread stuck([&] { ended = kubelet.prepare(kDriver, one("stuck", "u-1")).status; });
  ASSERT_TRUE(claims.wait_until_hanging());
  const auto begun = std::chrono::steady_clock::now();
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5));
  stuck.join();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAVAILABLE) << ended.error_message();
  EXPECT_FALSE(std::filesystem::exists(registry() + "/neuron.aws.com-uid-1-reg.sock"));
  claims.let_go();
}

TEST_F(DraServerTest, ACallThatRunsMayEndWhileTheServerDoes) {
  serve();
  const FakeDraKubelet kubelet(kubelet_dir);
  await(kubelet);
  claims.hang_on("almost");
  FakeDraKubelet::Call answered;
  std::jthread call([&] { answered = kubelet.prepare(kDriver, one("almost", "u-1")); });
  ASSERT_TRUE(claims.wait_until_hanging());
  std::jthread ends([&] { server.reset(); });
  const std::string socket = registry() + "/neuron.aws.com-uid-1-reg.sock";
  EXPECT_TRUE(kubelet.wait_for([&] { return !std::filesystem::exists(socket); }, kPatience)) << "first of all";
  claims.let_go();
  call.join();
  EXPECT_TRUE(answered.status.ok()) << answered.status.error_message();
  EXPECT_EQ(answered.claims["u-1"].error, "");
}

TEST_F(DraServerTest, ASocketOnWhichAnotherListensIsNotTaken) {
  serve();
  const auto second = DraServer::start(*socket_names(kubelet_dir, kDriver, "uid-1"), kDriver,
                                       {claims, health, workers, [](const RegistrationResult&) {}});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::failed_precondition);
  EXPECT_THAT(second.error().message, HasSubstr("--pod-uid"));
  const FakeDraKubelet kubelet(kubelet_dir);
  await(kubelet);
}

TEST_F(DraServerTest, RefusesInWordsAndIsAskedAgain) {
  serve();
  FakeDraKubelet::Options options;
  options.refuses = "not today";
  FakeDraKubelet kubelet(kubelet_dir, options);
  EXPECT_EQ(taken, 0);
  kubelet.refuse("");
  await(kubelet);
}

}  // namespace
}  // namespace neuron::plugin::dra
