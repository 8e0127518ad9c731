#include "agent/status/node_object.h"

#include "test/unit/status/writer_fixture.h"

namespace neuron::status {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kKey = "neuron-agent/starting";

class StartupTaintTest : public WriterFixture {
 protected:
  void put_taints(Json taints) { api_.write_as("karpenter", kNode, {{"spec", {{"taints", std::move(taints)}}}}); }
  void put_allocatable(const std::string& resource, const std::string& count) {
    api_.write_as("kubelet", kStatus, {{"status", {{"allocatable", {{resource, count}}}}}});
  }
  void start_with(StartupTaint taint) {
    auto with = settings();
    with.startup_taint = std::move(taint);
    writer_ = std::make_unique<StatusWriter>(api_, with, clock_);
  }
  [[nodiscard]] Json taints() const { return api_.at(kNode)["spec"].value("taints", Json::array()); }
  static Json taint(const std::string& key, const std::string& effect = "NoSchedule") {
    return {{"key", key}, {"effect", effect}};
  }
};

TEST_F(StartupTaintTest, GoesOnceTheNodeShowsWhatIsRegistered) {
  put_taints({taint(kKey), taint("other")});
  start_with({kKey, ""});
  begin();
  EXPECT_EQ(taints().size(), 2U) << "nothing is registered";
  writer_->set_registered({"aws.amazon.com/neuron", "vpc.amazonaws.com/efa"});
  settle();
  EXPECT_EQ(taints().size(), 2U) << "the kubelet has not updated its Node";
  put_allocatable("vpc.amazonaws.com/efa", "8");
  after(StartupGate::kWaiting);
  EXPECT_EQ(taints().size(), 2U) << "one of two resources";
  put_allocatable("aws.amazon.com/neuron", "16");
  after(StartupGate::kWaiting);
  EXPECT_EQ(taints(), Json::array({taint("other")}));
}

TEST_F(StartupTaintTest, WithoutOtherTaintsTheFieldGoes) {
  put_taints({taint(kKey)});
  put_allocatable("aws.amazon.com/neuron", "16");
  start_with({kKey, "NoSchedule"});
  writer_->set_registered({"aws.amazon.com/neuron"});
  settle();
  EXPECT_FALSE(api_.at(kNode)["spec"].contains("taints")) << "before anything else is written";
  put_taints({taint(kKey)});
  api_.forget_calls();
  after(StartupGate::kIdle);
  EXPECT_THAT(api_.calls(), IsEmpty()) << "it is a taint of the start alone";
}

TEST_F(StartupTaintTest, OnlyZerosAreNotShown) {
  put_taints({taint(kKey)});
  put_allocatable("aws.amazon.com/neuron", "0");
  start_with({kKey, ""});
  writer_->set_registered({"aws.amazon.com/neuron"});
  settle();
  EXPECT_EQ(taints().size(), 1U);
}

TEST_F(StartupTaintTest, ADriverNeedsNoResource) {
  put_taints({taint(kKey)});
  start_with({kKey, ""});
  writer_->set_registered({"neuron.aws.com"});
  settle();
  EXPECT_THAT(taints(), IsEmpty());
}

TEST_F(StartupTaintTest, AnotherEffectStays) {
  put_taints({taint(kKey, "NoExecute")});
  start_with({kKey, "NoSchedule"});
  writer_->set_registered({"neuron.aws.com"});
  settle();
  EXPECT_EQ(taints().size(), 1U);
}

TEST_F(StartupTaintTest, IsTriedAgainAfterAFailure) {
  put_taints({taint(kKey)});
  start_with({kKey, ""});
  writer_->set_registered({"neuron.aws.com"});
  api_.fail_next(1, 503);
  settle();
  EXPECT_EQ(taints().size(), 1U);
  after(StartupGate::kFirstRetry);
  EXPECT_THAT(taints(), IsEmpty());
}

TEST_F(StartupTaintTest, ATaintOfAnotherWriterInBetweenIsNotLost) {
  put_taints({taint(kKey)});
  const auto before = api_.at(kNode);
  EXPECT_FALSE(before["metadata"]["resourceVersion"].get<std::string>().empty());
  start_with({kKey, ""});
  writer_->set_registered({"neuron.aws.com"});
  api_.fail_next({.times = 1, .method = kube::Method::merge_patch, .status = 409});
  settle();
  put_taints({taint(kKey), taint("added")});
  after(StartupGate::kFirstRetry);
  EXPECT_EQ(taints(), Json::array({taint("added")}));
}

TEST_F(StartupTaintTest, WithoutTheOptionNothingIsRemoved) {
  put_taints({taint(kKey)});
  begin();
  writer_->set_registered({"neuron.aws.com"});
  after(StartupGate::kIdle);
  EXPECT_EQ(taints().size(), 1U);
}

TEST(StartupTaint, Text) {
  EXPECT_EQ(*parse_startup_taint("neuron-agent/c"), (StartupTaint{"neuron-agent/c", ""}));
  EXPECT_EQ(*parse_startup_taint("neuron-agent/c:NoExecute"), (StartupTaint{"neuron-agent/c", "NoExecute"}));
  EXPECT_EQ(to_string(StartupTaint{"neuron-agent/c", "NoExecute"}), "neuron-agent/c:NoExecute");
  for (const char* text : {"", "neuron-agent/", "neuron-agent/a b", "neuron-agent/a:", "neuron-agent/a:Never",
                           "neuron-agent/a=b:NoSchedule", "example.com/a", "a"}) {
    const auto parsed = parse_startup_taint(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_THAT(parsed.error().message, HasSubstr("use neuron-agent/NAME"));
  }
}

TEST(StartupTaint, ANodeIsOfferedWithItsDevices) {
  const std::map<std::string, bool> all = {{"aws.amazon.com/neuron", true}, {"vpc.amazonaws.com/efa", true}};
  EXPECT_TRUE(is_offered(well_host(), all));
  EXPECT_FALSE(is_offered(well_host(), {}));
  EXPECT_FALSE(is_offered(well_host(), {{"aws.amazon.com/neuron", false}, {"vpc.amazonaws.com/efa", true}}));
  EXPECT_FALSE(is_offered(well_host(0, 8), {{"vpc.amazonaws.com/efa", true}})) << "the driver is not loaded yet";
  model::HostScan gpu = well_host(0, 8);
  gpu.instance_type = "p5.48xlarge";
  EXPECT_TRUE(is_offered(gpu, {{"vpc.amazonaws.com/efa", true}}));
  model::HostScan unknown = well_host(0, 8);
  unknown.instance_type = "";
  unknown.neuron_pci_functions = 16;
  EXPECT_FALSE(is_offered(unknown, {{"vpc.amazonaws.com/efa", true}}));
}

}  // namespace
}  // namespace neuron::status
