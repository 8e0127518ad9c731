// The real agent that honors the ids which a scheduler extender has written on pods, between a kubelet stand-in and a
// real API server of a few lines.
#include <nlohmann/json.hpp>

#include "agent/kube/api_client.h"
#include "test/fakes/fake_api_server.h"
#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using Json = nlohmann::json;
using testing::ElementsAre;
using Ids = std::vector<std::string>;

class Placement : public ::testing::Test {
 protected:
  Placement() : node_("trn1.32xlarge") {
    EXPECT_TRUE(cluster_.is_up());
    point_at(cluster_.api_places());
  }
  void point_at(const kube::ApiPlaces& places) {
    node_.extra_arguments = {"--honor-placement", "on",           "--node-name",      "node-1",
                             "--api-server",      places.url,     "--api-token-file", places.token_file,
                             "--api-ca-file",     places.ca_file, "--log-level",      "debug"};
  }
  // As the extender's bind leaves it; `ids` "": as a scheduler's.
  void bind(const std::string& name, const std::string& resource, const std::string& units, const std::string& ids,
            const std::string& time = "1000") {
    const Json container{{"name", "main"}, {"resources", {{"limits", {{resource, units}}}}}};
    Json pod{{"metadata", {{"name", name}, {"namespace", "default"}}},
             {"spec", {{"nodeName", "node-1"}, {"containers", Json::array({container})}}},
             {"status", {{"phase", "Pending"}}}};
    if (!ids.empty()) {
      pod["metadata"]["annotations"] = {
          {"AWS_NEURON_IDS", ids}, {"NEURON_ALLOC_TIME", time}, {"NEURON_ALLOCATED", "false"}};
    }
    EXPECT_TRUE(
        api_.call({.method = kube::Method::create, .path = "/api/v1/namespaces/default/pods", .body = pod.dump()}));
  }
  [[nodiscard]] bool is_seen(const std::string& name) { return node_.wait_log("pod waits pod=default/" + name + " "); }
  // A pod that is bound, then admitted: its ids of the resource.
  [[nodiscard]] Ids admit(const std::string& name, const std::string& resource, int units) {
    const auto pod = node_.run(name, {{resource, units}});
    return pod ? pod->containers.at(0).ids.at(resource) : Ids{pod.error().message};
  }
  [[nodiscard]] std::string allocated(const std::string& name) {
    const auto reply = api_.call({.path = "/api/v1/namespaces/default/pods/" + name});
    return reply ? Json::parse(reply->body).value("/metadata/annotations/NEURON_ALLOCATED"_json_pointer, "") : "";
  }
  [[nodiscard]] bool becomes_allocated(const std::string& name) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (allocated(name) != "true") {
      if (std::chrono::steady_clock::now() > until) return false;
      static_cast<void>(node_.agent->wait(std::chrono::milliseconds(5)));
    }
    return true;
  }
  [[nodiscard]] std::string log() { return node_.agent->log(); }

  FakeApiServer cluster_{"fake_cluster.py"};
  kube::ApiClient api_{cluster_.api_places()};
  Node node_;
};

TEST_F(Placement, APodGetsTheIdsThatWereWrittenOnIt) {
  bind("devices", kNeuron, "2", "12,13");
  node_.start();
  ASSERT_TRUE(node_.wait_allocatable(kNeuron, 16) && node_.wait_allocatable(kCore, 32)) << log();
  ASSERT_TRUE(is_seen("devices")) << log();
  EXPECT_THAT(admit("devices", kNeuron, 2), ElementsAre("12", "13")) << log();
  EXPECT_TRUE(becomes_allocated("devices"));
  bind("cores", kCore, "3", "9,10,11");  // no choice of ours, which fills devices from their first core
  ASSERT_TRUE(is_seen("cores"));
  EXPECT_THAT(admit("cores", kCore, 3), ElementsAre("9", "10", "11")) << log();
  EXPECT_TRUE(becomes_allocated("cores"));
  EXPECT_TRUE(node_.wait_log("placement honored pod=default/cores container=main resource=" + std::string(kCore) +
                             " ids=9,10,11"));
}

// As where the kubelet's watch is quicker than the agent's.
TEST_F(Placement, ACallWaitsForItsPod) {
  bool bound = false;
  node_.host.write();
  FakeKubeletOptions options;
  options.on_step = [&](AdmissionStep step, const std::string&) {
    if (step == AdmissionStep::before_preferred && !std::exchange(bound, true)) bind("late", kNeuron, "2", "12,13");
  };
  node_.start_kubelet(options).start_agent();
  ASSERT_TRUE(node_.wait_allocatable(kNeuron, 16)) << log();
  bind("other", kNeuron, "4", "");
  ASSERT_TRUE(is_seen("other")) << log();  // so the watch is up
  EXPECT_THAT(admit("late", kNeuron, 2), ElementsAre("12", "13")) << log();
}

TEST_F(Placement, OfTwoThatFitTheAgentChoosesAndSaysWhy) {
  bind("a", kNeuron, "2", "12,13");
  bind("b", kNeuron, "2", "8,9");  // of the same age
  node_.start();
  ASSERT_TRUE(node_.wait_allocatable(kNeuron, 16)) << log();
  ASSERT_TRUE(is_seen("a") && is_seen("b")) << log();
  EXPECT_THAT(admit("a", kNeuron, 2), ElementsAre("0", "1"));
  EXPECT_TRUE(
      node_.wait_log("placement not honored pod=default/a resource=aws.amazon.com/neuron: the call may be for "
                     "another pod as well: default/b"));
  EXPECT_EQ(allocated("a"), "false");
}

TEST_F(Placement, IdsThatAreHeldOrUnhealthyAreNotGiven) {
  node_.start();
  node_.host.set("neuron9", "sram_ecc_uncorrected=1");
  ASSERT_TRUE(node_.wait_allocatable(kNeuron, 15)) << log();
  bind("holder", kCore, "2", "24,25");
  ASSERT_TRUE(is_seen("holder"));
  EXPECT_THAT(admit("holder", kCore, 2), ElementsAre("24", "25")) << log();
  bind("held", kNeuron, "2", "12,13");
  ASSERT_TRUE(is_seen("held"));
  EXPECT_THAT(admit("held", kNeuron, 2), testing::Not(testing::Contains("12")));
  EXPECT_TRUE(
      node_.wait_log("placement not honored pod=default/held resource=aws.amazon.com/neuron: core 24 is held by "))
      << log();
  bind("broken", kNeuron, "1", "9");
  ASSERT_TRUE(is_seen("broken"));
  EXPECT_THAT(admit("broken", kNeuron, 1), testing::Not(ElementsAre("9")));
  EXPECT_TRUE(node_.wait_log("placement not honored pod=default/broken resource=aws.amazon.com/neuron: 9 is unhealthy"))
      << log();
  EXPECT_EQ(allocated("held"), "false");
}

TEST_F(Placement, WithoutTheApiServerTheAgentChooses) {
  kube::ApiPlaces places = cluster_.api_places();
  places.url = "https://127.0.0.1:1";
  point_at(places);
  bind("a", kNeuron, "2", "12,13");
  node_.start();
  ASSERT_TRUE(node_.wait_allocatable(kNeuron, 16)) << log();
  EXPECT_TRUE(node_.wait_log("pod watch failed, placements not honored: ")) << log();
  EXPECT_THAT(admit("a", kNeuron, 2), ElementsAre("0", "1"));
  node_.agent->signal(SIGTERM);
  EXPECT_EQ(node_.agent->wait(kPatience), 0);
}

}  // namespace
}  // namespace neuron::fakes
