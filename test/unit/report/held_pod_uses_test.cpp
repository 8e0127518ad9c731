#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/report/node_report.h"
#include "test/unit/grant/nodes.h"

namespace neuron::report {
namespace {

using holdings::Holding;
using model::Resource;
using testing::ElementsAre;
using testing::IsEmpty;

Holding held(Resource resource, std::vector<int> units, std::vector<int> cores, std::vector<int> devices,
             const std::string& holder, const std::string& claim = "") {
  Holding holding{resource, std::move(units), std::move(cores), std::move(devices), holder, 0, {}};
  holding.shown_as = holder;
  holding.claim = claim;
  return holding;
}

class HeldPodUses : public testing::Test {
 protected:
  const NodeReport report_ = make_node_report(snapshot_of("trn1.32xlarge")->host);
};

TEST_F(HeldPodUses, OneEntryForEachContainerAndClaim) {
  const std::string efa = report_.host.efas[2].name;
  const auto uses = pod_uses(
      {held(Resource::neuroncore, {3}, {3}, {1}, "b/p/main"), held(Resource::neuron, {4}, {8, 9}, {4}, "a/q/main"),
       held(Resource::efa, {2}, {}, {}, "b/p/main"), held(Resource::neuroncore, {}, {10}, {5}, "b/p/main", "chips")},
      report_);
  EXPECT_THAT(uses,
              ElementsAre(PodUse{"a", "q", "main", {4}, {8, 9}, {}, ""}, PodUse{"b", "p", "main", {1}, {3}, {efa}, ""},
                          PodUse{"b", "p", "main", {5}, {10}, {}, "chips"}));
}

// Given a moment ago, or known by the pod's uid alone: held, whoever the holder is.
TEST_F(HeldPodUses, HoldersWithoutANameAreNotLeftOut) {
  Holding claimed = held(Resource::neuroncore, {}, {10}, {5}, "", "chips");
  claimed.claim_namespace = "team";
  const auto uses = pod_uses({held(Resource::neuroncore, {3}, {3}, {1}, ""),
                              held(Resource::neuroncore, {7}, {7}, {3}, "pod 1234-5/main"), claimed},
                             report_);
  EXPECT_THAT(uses,
              ElementsAre(PodUse{"", "", "", {1, 3}, {3, 7}, {}, ""}, PodUse{"team", "", "", {5}, {10}, {}, "chips"}));
  NodeReport report = report_;
  report.pods = uses;
  EXPECT_THAT(pods_on_device(report, 1).value(), ElementsAre("unknown"));
  EXPECT_THAT(pods_on_device(report, 2).value(), IsEmpty());
}

TEST_F(HeldPodUses, SharesOfADeviceAreTheirCores) {
  const model::Allocation one{"a", "p", "main", "neuron.aws.com", {"neuron-device-3-share-0-0"}, "", "one"};
  const model::Allocation two{"a", "q", "main", "neuron.aws.com", {"neuron-device-3-share-1-1"}, "", "two"};
  EXPECT_THAT(
      pod_uses({one, two}, report_, "neuron.aws.com"),
      ElementsAre(PodUse{"a", "p", "main", {3}, {6}, {}, "one"}, PodUse{"a", "q", "main", {3}, {7}, {}, "two"}));
}

TEST_F(HeldPodUses, AnInterfaceThatThisSnapshotLacksIsLeftOut) {
  EXPECT_THAT(pod_uses({held(Resource::efa, {99}, {}, {}, "b/p/main")}, report_), IsEmpty());
}

}  // namespace
}  // namespace neuron::report
