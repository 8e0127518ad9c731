#include "tools/neuron-sim/kubelet/shell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "test/unit/core/make_host.h"
#include "test/unit/kubelet/test_plugin.h"

namespace neuron::sim::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr const char* kNeuron = "aws.amazon.com/neuron";
constexpr const char* kCore = "aws.amazon.com/neuroncore";
constexpr const char* kEfa = "vpc.amazonaws.com/efa";

IdSet numbers(int count) {
  IdSet ids;
  for (int i = 0; i < count; ++i) ids.insert(std::to_string(i));
  return ids;
}

ResourceView view_of(const IdSet& healthy, int in_use) {
  ResourceView view;
  view.healthy = healthy;
  view.capacity = view.allocatable = static_cast<int>(healthy.size());
  view.in_use = in_use;
  return view;
}

// trn1.32xlarge as the kubelet sees it before anything has run.
struct Trn1 {
  model::HostScan host = neuron::test::scan_of("trn1.32xlarge");
  NodeUse use;

  Trn1() {
    IdSet efas;
    for (const auto& efa : host.efas) efas.insert(efa.name);
    use.resources = {{kNeuron, view_of(numbers(16), 0)}, {kCore, view_of(numbers(32), 0)}, {kEfa, view_of(efas, 0)}};
  }
  [[nodiscard]] std::string efa_near(int device) const {
    const auto topology = allocator::make_topology(host);
    const auto& near = topology.devices.at(static_cast<std::size_t>(device)).near_efas;
    return topology.efas.at(static_cast<std::size_t>(near.at(0))).name;
  }
  void hold(const std::string& resource, const std::vector<std::string>& ids) {
    ContainerView container{"c", ContainerKind::app, {}};
    for (const std::string& id : ids) container.devices.push_back({resource, id, {}});
    use.pods.push_back({"other" + std::to_string(use.pods.size()), "default", "uid", {container}});
  }
};

ContainerGrant granted(const std::string& name, std::map<std::string, std::vector<std::string>> ids) {
  ContainerGrant grant;
  grant.name = name;
  grant.ids = std::move(ids);
  return grant;
}

PodSpec asking(std::map<std::string, int> requests) {
  PodSpec pod{"train"};
  pod.containers.push_back({"main", ContainerKind::app, std::move(requests)});
  return pod;
}

PodNotes explained(const Trn1& node, const PodSpec& pod, std::vector<ContainerGrant> grants) {
  return explain_pod(pod, PodResult{"uid", std::move(grants)}, node.use, node.use, &node.host);
}

TEST(Explain, DevicesAndInterfaces) {
  const Trn1 node;
  const PodNotes notes =
      explained(node, asking({{kNeuron, 4}, {kEfa, 2}}),
                {granted("main", {{kNeuron, {"0", "1", "2", "3"}}, {kEfa, {node.efa_near(0), node.efa_near(2)}}})});
  ASSERT_EQ(notes.containers.size(), 1U);
  EXPECT_EQ(notes.containers[0].asked, "neuron=4 efa=2");
  EXPECT_THAT(
      notes.containers[0].why,
      UnorderedElementsAre(Pair(kNeuron, "aligned group of 4, 8 hops, 1 NUMA crossing, leaves 3 groups of 4 whole"),
                           Pair(kEfa, "nearest to devices 0-3, 1 NUMA crossing, 2 switches")));
}

TEST(Explain, ABadAnswerIsCalledBad) {
  const Trn1 node;
  const PodNotes notes =
      explained(node, asking({{kNeuron, 2}, {kEfa, 2}}),
                {granted("main", {{kNeuron, {"0", "10"}}, {kEfa, {node.efa_near(0), node.efa_near(4)}}})});
  EXPECT_THAT(notes.containers[0].why.at(kNeuron), HasSubstr("set of 2, not connected, 4 hops"));
  EXPECT_THAT(notes.containers[0].why.at(kEfa), HasSubstr("1 of 2 nearest to device 0"));
  const PodNotes far = explained(node, asking({{kNeuron, 1}, {kEfa, 1}}),
                                 {granted("main", {{kNeuron, {"0"}}, {kEfa, {node.efa_near(4)}}})});
  EXPECT_THAT(far.containers[0].why.at(kEfa), HasSubstr("none is nearest to the container's devices"));
}

TEST(Explain, CoresCountAsTheRuntimeDoes) {
  const Trn1 node;
  const auto why = [&](const std::vector<std::string>& cores) {
    return explained(node, asking({{kCore, static_cast<int>(cores.size())}}), {granted("main", {{kCore, cores}})})
        .containers.at(0)
        .why.at(kCore);
  };
  EXPECT_THAT(why({"1", "8"}), HasSubstr("one range over 2 devices"));  // the tail of one, the head of another
  EXPECT_THAT(why({"0", "8"}), HasSubstr("scattered over 2 devices"));
  EXPECT_EQ(why({"99"}), "ids or core numbers that the topology does not know");
}

TEST(Explain, WhatOthersHoldIsNotWhole) {
  Trn1 node;
  node.hold(kCore, {"8"});     // device 4
  node.hold(kNeuron, {"15"});  // its cores are not left either, whatever the lists say
  node.hold(kEfa, {node.efa_near(0)});
  const PodNotes notes = explained(node, asking({{kNeuron, 1}}), {granted("main", {{kNeuron, {"5"}}})});
  EXPECT_EQ(notes.containers[0].why.at(kNeuron), "one device, 0 NUMA crossings, leaves 2 groups of 4 whole");
  EXPECT_EQ(notes.left, "neuron 14 of 16, neuroncore 29 of 32, efa 7 of 8");
}

TEST(Explain, TheContainersOfAPodDoNotCountEachOthersDevicesAsFree) {
  const Trn1 node;
  PodSpec pod{"train"};
  pod.containers.push_back({"setup", ContainerKind::init, {{kNeuron, 1}}});
  pod.containers.push_back({"a", ContainerKind::app, {{kNeuron, 1}}});
  pod.containers.push_back({"b", ContainerKind::app, {{kNeuron, 1}}});
  const PodNotes notes = explained(
      node, pod,
      {granted("setup", {{kNeuron, {"0"}}}), granted("a", {{kNeuron, {"0"}}}), granted("b", {{kNeuron, {"4"}}})});
  ASSERT_EQ(notes.containers.size(), 3U);
  EXPECT_THAT(notes.containers[1].why.at(kNeuron), HasSubstr("leaves 3 groups of 4 whole"));
  EXPECT_THAT(notes.containers[2].why.at(kNeuron), HasSubstr("leaves 2 groups of 4 whole"));
}

TEST(Explain, WithoutAHostOnlyTheKubeletsCount) {
  NodeUse use;
  use.resources = {{kNeuron, view_of(numbers(16), 4)}, {"example.com/chip", view_of(numbers(2), 3)}};
  const PodSpec pod = asking({{kNeuron, 4}});
  const PodNotes notes = explain_pod(pod, PodResult{"uid", {granted("main", {{kNeuron, {"0"}}})}}, use, use, nullptr);
  EXPECT_EQ(notes.left, "neuron 12 of 16, example.com/chip 0 of 2");
  ASSERT_EQ(notes.containers.size(), 1U);
  EXPECT_TRUE(notes.containers[0].why.empty());
  EXPECT_TRUE(explain_pod(pod, fail(ErrorCode::unavailable, "no"), use, use, nullptr).containers.empty());
}

TEST(Explain, ForeignIdsAndANodeWithoutDevices) {
  Trn1 node;
  const PodNotes odd = explained(
      node, asking({{kNeuron, 1}}),
      {granted("main", {{kNeuron, {"99999999999", "-1", "x"}}, {kEfa, {"rdmap0s0"}}, {"example.com/x", {"1"}}})});
  EXPECT_EQ(odd.containers[0].why.at(kNeuron), "ids or core numbers that the topology does not know");
  EXPECT_FALSE(odd.containers[0].why.contains("example.com/x"));
  node.host = {};
  EXPECT_EQ(explained(node, asking({{kNeuron, 1}}), {}).left, "neuron 0 of 16, neuroncore 0 of 32, efa 0 of 8");
}

TEST(Explain, TheShellPrintsIt) {
  KubeletTest kubelet;
  TestPlugin plugin(*kubelet, kNeuron, "neuron.sock", numbered_devices(16));
  ASSERT_TRUE(plugin.register_plugin().ok());
  std::istringstream input("wait neuron=16\npod all neuron=16\npod late neuron=1\n");
  std::ostringstream out, errors;
  Shell shell(*kubelet, out, errors, kPatience, [] { return neuron::test::scan_of("trn1.32xlarge"); });
  EXPECT_EQ(shell.run(input, ""), 0) << errors.str();
  EXPECT_THAT(out.str(), HasSubstr("  main, asked neuron=16\n"));
  EXPECT_THAT(out.str(), HasSubstr("      because              aligned group of 16, "));
  EXPECT_THAT(out.str(), HasSubstr("pod late: refused\n"));
  EXPECT_THAT(out.str(), HasSubstr("  left: neuron 0 of 16\n"));
}

}  // namespace
}  // namespace neuron::sim::test
