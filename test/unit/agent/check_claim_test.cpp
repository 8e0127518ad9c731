#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/base/fd.h"
#include "test/unit/agent/checked_node.h"
#include "test/unit/render/golden.h"

namespace neuron::agent::test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTemplate =
    R"({"kind": "ResourceClaimTemplate", "metadata": {"name": "neurons"}, "spec": {"spec": {
  "devices": {"config": [{"opaque": {"driver": "neurons.aws.com", "parameters":
    {"apiVersion": "neuron.aws.com/v1", "kind": "NeuronConfig", "logicalNeuronCore": 2}}}, {"opaque": {"driver":
    "neuron.aws.com", "parameters": {"apiVersion": "neuron.aws.com/v1", "kind": "NeuronConfig", "lnc": 2}}}]}}}})";

// Files of one test.
class CheckClaim : public ::testing::Test {
 protected:
  CheckedNode node_{"trn1.2xlarge"};  // never written: no machine is needed

  [[nodiscard]] Options options(const std::string& text) const {
    node_.touch("claims.json", text);
    Options options;
    options.root = "/no/such/root";
    options.claim = node_.kubelet + "/claims.json";
    return options;
  }
};

TEST_F(CheckClaim, TheWorstComesFirst) {
  const Report report = check_claim(options(kTemplate));
  EXPECT_EQ(report.verdict, Verdict::findings);
  EXPECT_EQ(report.error, "");
  neuron::test::expect_golden("../../agent/golden/claim.txt", report.output);
}

TEST_F(CheckClaim, JsonHoldsTheSame) {
  Options json = options(kTemplate);
  json.output = ReportForm::json;
  neuron::test::expect_golden("../../agent/golden/claim.json", check_claim(json).output);
}

TEST_F(CheckClaim, GoodOnesAreCounted) {
  const Report report =
      check_claim(options(R"({"kind": "ResourceClaim", "spec": {}}{"kind": "DeviceClass", "spec": {}})"));
  EXPECT_EQ(report.verdict, Verdict::good);
  EXPECT_EQ(report.output, "nothing wrong: 2 objects, 0 configurations for neuron.aws.com\n");
}

// Links are followed, as config maps are mounted by links.
TEST_F(CheckClaim, ALinkIsFollowed) {
  Options link = options(kTemplate);
  ASSERT_EQ(::symlink("claims.json", (node_.kubelet + "/link").c_str()), 0);
  link.claim = node_.kubelet + "/link";
  link.dra.pool.driver = "neurons.aws.com";
  EXPECT_EQ(check_claim(link).output, "nothing wrong: 1 object, 1 configuration for neurons.aws.com\n");
}

TEST_F(CheckClaim, CannotTell) {
  Options wrong = options("kind: ResourceClaim\nkind: Pod\n");
  EXPECT_THAT(check_claim(wrong).error,
              HasSubstr("claims.json: document 1, line 2: the key \"kind\" a second time: remove one"));
  EXPECT_THAT(check_claim(options("{kind: ResourceClaim, apiVersion: example.com/v1}")).error,
              HasSubstr("of resource.k8s.io; ResourceClaim *: skipped"));
  EXPECT_THAT(check_claim(options("{}")).error, HasSubstr("no ResourceClaim, ResourceClaimTemplate or DeviceClass"));
  EXPECT_THAT(check_claim(options(std::string(40U << 20U, ' '))).error, HasSubstr("more than 33554432 bytes"));
  wrong.claim = "";
  EXPECT_EQ(check_claim(wrong).verdict, Verdict::cannot_tell);
  wrong.output = ReportForm::json;
  EXPECT_EQ(nlohmann::json::parse(check_claim(wrong).output).at("verdict"), "cannot_tell");
}

TEST_F(CheckClaim, APipeThatDoesNotEndTakesNoLongerThanTheTimeout) {
  Options waits = options("");
  const std::string pipe = node_.kubelet + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Fd writer(::open(pipe.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(writer.valid());
  waits.claim = pipe;
  waits.timeout = std::chrono::milliseconds(200);
  EXPECT_THAT(check_claim(waits).error, HasSubstr("reading the claims took longer than 200 ms"));
}

}  // namespace
}  // namespace neuron::agent::test
