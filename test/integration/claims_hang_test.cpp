// Directories that hang in DRA mode: calls on them that do not come back (docs/reliability.md#claims).
// test/fakes/faulty_io.cpp.
#include <sys/stat.h>

#include <fstream>

#include "test/fakes/paths.h"
#include "test/fakes/sanitized.h"
#include "test/integration/claims_node.h"

namespace neuron::fakes {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kClaims = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims";
constexpr seconds kEnd{10};  // of the agent, after SIGTERM; the kubelet waits for 30 s

// A node whose agent sees faults as `rules` says.
struct HangOfClaims : testing::Test {
  ClaimsNode node{"trn1.32xlarge"};

  HangOfClaims() {
    node.extra_environment = {"LD_PRELOAD=" + faulty_io(), "FAULTY_IO=" + control(), sanitizer_allows_preload()};
  }
  [[nodiscard]] std::string control() const { return node.kubelet_dir + "/faulty-io"; }
  void rules(const std::string& text) const {
    std::ofstream(control() + ".new") << text;
    std::filesystem::rename(control() + ".new", control());
  }
  // A claim of that device, allocated, and its pod; as the kubelet names it.
  FakeDraKubelet::Claim make_claim(const std::string& name, const std::string& device) {
    node.put("/api/v1/namespaces/team/pods",
             {{"metadata", {{"name", name + "-pod"}, {"uid", name + "-pod-uid"}}},
              {"spec",
               {{"nodeName", "node-1"},
                {"resourceClaims", {{{"name", "chips"}, {"resourceClaimName", name}}}},
                {"containers", {{{"name", "main"}, {"resources", {{"claims", {{{"name", "chips"}}}}}}}}}}}});
    const Json result = {{"request", "chips"}, {"driver", kDriver}, {"pool", "node-1"}, {"device", device}};
    const Json stored = node.put(
        kClaims,
        {{"metadata", {{"name", name}}},
         {"spec", {{"devices", {{"requests", {{{"name", "chips"}, {"exactly", {{"deviceClassName", kDriver}}}}}}}}}},
         {"status",
          {{"allocation", {{"devices", {{"results", {result}}}}}},
           {"reservedFor", {{{"resource", "pods"}, {"name", name + "-pod"}, {"uid", name + "-pod-uid"}}}}}}});
    return {"team", name, stored.at("metadata").at("uid").get<std::string>()};
  }
  [[nodiscard]] std::string prepare_error(const FakeDraKubelet::Claim& claim) {
    const auto call = node.kubelet->prepare(kDriver, {claim});
    return call.status.ok() ? call.claims.at(claim.uid).error : call.status.error_message();
  }
  [[nodiscard]] std::string spec_of(const FakeDraKubelet::Claim& claim) const {
    return node.cdi_dir() + "/k8s.neuron.aws.com-claim_" + claim.uid + ".json";
  }
  [[nodiscard]] bool wait_log(const std::string& text) {
    return node.wait_for([&] { return node.agent->log().find(text) != std::string::npos; });
  }
  [[nodiscard]] bool wait_published() {
    return node.wait_for([&] { return !node.slices().empty(); });
  }
  [[nodiscard]] bool wait_unhealthy(int index) {
    return node.wait_for([&] {
      const auto health = node.kubelet->health();
      const auto device = health.find("node-1/neuron-device-" + std::to_string(index));
      return device != health.end() && device->second.status == v1alpha1::UNHEALTHY;
    });
  }
  // Within kEnd, with 0.
  [[nodiscard]] testing::AssertionResult ends() {
    const auto begin = std::chrono::steady_clock::now();
    node.agent->signal(SIGTERM);
    const auto code = node.agent->wait(kLong);
    const auto took = std::chrono::steady_clock::now() - begin;
    if (code == 0 && took < kEnd) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "code " << code.value_or(-1000) << " after "
                                       << std::chrono::duration_cast<std::chrono::milliseconds>(took).count() << " ms\n"
                                       << node.agent->log();
  }
};

TEST_F(HangOfClaims, ACdiDirectoryThatHangsHoldsUpNeitherTheStartNorTheEnd) {
  rules("hang */cdi*\n");
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  EXPECT_TRUE(wait_published()) << node.agent->log();
  EXPECT_THAT(node.agent->log(), HasSubstr("claim files not written, containers may fail to start: " + node.cdi_dir()));
  EXPECT_TRUE(ends());
  EXPECT_THAT(node.agent->log(), HasSubstr("a file in " + node.cdi_dir() + " or "));
  EXPECT_TRUE(wait_log("thread blocked at exit, abandoned: ")) << node.agent->log();
}

TEST_F(HangOfClaims, ClaimsArePreparedOnceTheirDirectoryAnswers) {
  rules("hang */cdi*\n");
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  const auto claim = make_claim("train", "neuron-device-4");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(prepare_error(claim), HasSubstr("hangs; retried automatically")) << node.agent->log();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kEnd) << "the kubelet waits for 45 s";
  rules("");
  EXPECT_TRUE(wait_log("claim files written again")) << node.agent->log();
  EXPECT_EQ(prepare_error(claim), "") << node.agent->log();
  EXPECT_TRUE(std::filesystem::exists(spec_of(claim)));
}

TEST_F(HangOfClaims, ADirectoryThatHangsLaterHoldsUpNothingElse) {
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  ASSERT_TRUE(wait_published());
  const auto claim = make_claim("train", "neuron-device-4");
  ASSERT_EQ(prepare_error(claim), "") << node.agent->log();
  rules("hang */cdi/*\n");
  std::filesystem::remove(spec_of(claim));
  ASSERT_TRUE(wait_log("claim files not written")) << node.agent->log();
  node.host.set("neuron5", "sram_ecc_uncorrected=1");
  EXPECT_TRUE(wait_unhealthy(5)) << node.agent->log();
  EXPECT_TRUE(ends());
}

// All that the kubelet shares with the driver: sockets, what is prepared, the lock of the mode.
TEST_F(HangOfClaims, KubeletDirectoriesThatHangHoldUpNeitherHealthNorTheEnd) {
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  ASSERT_TRUE(wait_published());
  rules("hang */plugins*\nhang */device-plugins*\n");
  ASSERT_TRUE(wait_log("not answering, claims continue without it")) << node.agent->log();
  node.host.set("neuron5", "sram_ecc_uncorrected=1");
  EXPECT_TRUE(wait_unhealthy(5)) << node.agent->log();
  EXPECT_TRUE(ends());
}

TEST_F(HangOfClaims, KubeletDirectoriesThatHangFromTheStartAreServedWhenTheyAnswer) {
  rules("hang */plugins*\nhang */device-plugins*\n");
  node.start();
  ASSERT_TRUE(wait_log("not answering, claims continue without it")) << node.agent->log();
  rules("");
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  const auto claim = make_claim("train", "neuron-device-4");
  EXPECT_EQ(prepare_error(claim), "") << node.agent->log();
  EXPECT_TRUE(ends());
}

TEST_F(HangOfClaims, AFifoInASpecsPlaceIsReplaced) {
  node.start();
  ASSERT_TRUE(node.wait_registered()) << node.agent->log();
  const auto claim = make_claim("train", "neuron-device-4");
  ASSERT_EQ(prepare_error(claim), "") << node.agent->log();
  ASSERT_TRUE(std::filesystem::remove(spec_of(claim)));
  ASSERT_TRUE(node.wait_for([&] { return std::filesystem::exists(spec_of(claim)); }));
  ASSERT_TRUE(ends());
  std::filesystem::remove(spec_of(claim));
  ASSERT_EQ(::mkfifo(spec_of(claim).c_str(), 0600), 0);
  node.start_agent();
  EXPECT_TRUE(node.wait_for([&] { return std::filesystem::is_regular_file(spec_of(claim)); })) << node.agent->log();
  EXPECT_TRUE(ends());
}

}  // namespace
}  // namespace neuron::fakes
