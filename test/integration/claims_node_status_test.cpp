// Labels, conditions and events in DRA mode, by the client that slices and claims go by.
#include "test/integration/claims_node.h"

namespace neuron::fakes {
namespace {

TEST(ClaimsNodeStatus, AFaultAndItsEndAreTold) {
  ClaimsNode node("trn1.32xlarge");
  node.extra_arguments = {"--node-status", "on", "--accelerated-hardware-ready"};
  node.host.write();
  node.host.set("neuron3", "sram_ecc_uncorrected=1");  // so that it does not wait at the start
  node.kubelet.emplace(node.kubelet_dir);
  node.start_agent();
  const auto statuses = [&node] {
    std::string said;
    const ClaimsNode::Json object = node.get("/api/v1/nodes/node-1");
    const auto conditions = object.value("/status/conditions"_json_pointer, ClaimsNode::Json::array());
    for (const auto& one : conditions) said += one.value("type", "") + "=" + one.value("status", "") + " ";
    return said;
  };
  EXPECT_TRUE(node.wait_for([&] { return statuses() == "NeuronHealth=True AcceleratedHardwareReady=False "; }))
      << node.agent->log();
  EXPECT_TRUE(node.wait_registered());
  node.host.set("neuron3", "heal");
  EXPECT_TRUE(node.wait_for([&] { return statuses() == "NeuronHealth=False AcceleratedHardwareReady=True "; }))
      << node.agent->log();
  EXPECT_TRUE(node.wait_for([&] { return !node.slices().empty(); }));
  const auto begin = std::chrono::steady_clock::now();
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(kLong), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace neuron::fakes
