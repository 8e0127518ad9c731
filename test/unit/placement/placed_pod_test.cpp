#include "plugin/placement/placed_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/placement/pods.h"

namespace neuron::plugin {
namespace {

using model::Resource;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(PlacedIds, AreAListOfNumbers) {
  EXPECT_EQ(parse_placed_ids("0"), std::vector<int>{0});
  EXPECT_EQ(parse_placed_ids("7,0,12"), (std::vector<int>{7, 0, 12}));
  std::string most = "0";
  for (std::size_t i = 1; i < kMostPlacedIds; ++i) most += ",1";
  EXPECT_TRUE(parse_placed_ids(most));
  for (const std::string& text :
       {std::string(), std::string(","), std::string("1,"), std::string("-1"), std::string("1-4"), std::string("65536"),
        std::string("one"), std::string("1;2"), most + ",1", std::string(kMostIdsBytes + 1, '1')}) {
    EXPECT_FALSE(parse_placed_ids(text)) << text;
  }
}

TEST(PlacedPods, OneContainerHasAllIds) {
  const PlacedPod pod = waiting("a", "5,4", "1789352350678418384");
  EXPECT_TRUE(pod.waits);
  EXPECT_EQ(pod.problem, "");
  EXPECT_EQ(pod.time, 1789352350678418384U);
  ASSERT_EQ(pod.containers.size(), 1U);
  EXPECT_EQ(pod.containers[0].placed, (PlacedIds{Resource::neuron, {4, 5}}));
}

TEST(PlacedPods, ContainersShareTheListInTheKubeletsOrder) {
  Json pod = pod_json(
      "a", {container("one", {{kCore, "2"}}), container("side", {}), container("two", {{kNeuron, "1"}})}, "3,8,9,4");
  pod["spec"]["initContainers"] = Json::array({container("first", {{kNeuron, "1"}})});
  const PlacedPod read_pod = read(pod);
  ASSERT_EQ(read_pod.containers.size(), 3U) << read_pod.problem;
  EXPECT_EQ(read_pod.containers[0].placed, (PlacedIds{Resource::neuron, {3}}));
  EXPECT_EQ(read_pod.containers[1].placed, (PlacedIds{Resource::neuroncore, {8, 9}}));
  EXPECT_EQ(read_pod.containers[2].placed, (PlacedIds{Resource::neuron, {4}}));
}

TEST(PlacedPods, AContainerOfBothNamesHasIdsOfDevices) {
  const PlacedPod pod = read(pod_json("a", {container("main", {{kNeuron, "1"}, {kCore, "2"}})}, "3"));
  EXPECT_EQ(pod.containers.at(0).placed, (PlacedIds{Resource::neuron, {3}}));
}

TEST(PlacedPods, WhatCannotBeMeantIsAProblem) {
  const auto problem = [](const Json& pod) {
    const PlacedPod got = read(pod);
    EXPECT_FALSE(got.is_placed());
    return got.problem;
  };
  const std::vector<Json> two = {container("main", {{kNeuron, "2"}})};
  EXPECT_THAT(problem(pod_json("a", two, "x")), HasSubstr("no list of ids"));
  EXPECT_EQ(problem(pod_json("a", two, "4")), "AWS_NEURON_IDS has 1 id, the pod asks for 2 units");
  EXPECT_EQ(problem(pod_json("a", two, "4,4")), "AWS_NEURON_IDS has an id twice");
  Json typed = pod_json("a", two, "4,5");
  typed["metadata"]["annotations"]["NEURON_RESOURCE_TYPE"] = kCore;
  EXPECT_THAT(problem(typed), HasSubstr("NEURON_RESOURCE_TYPE"));
  typed["spec"]["containers"] = Json::array({container("main", {{kCore, "2"}})});
  EXPECT_TRUE(read(typed).is_placed());
}

TEST(PlacedPods, OnlyThoseWaitThatNobodyHasAdmitted) {
  const Json pod = pod_json("a", {container("main", {{kNeuron, "1"}})}, "4");
  const auto with = [&](const char* where, const Json& value) {
    Json changed = pod;
    changed[Json::json_pointer(where)] = value;
    return read(changed);
  };
  EXPECT_TRUE(read(pod).waits);
  EXPECT_FALSE(with("/status/startTime", "2026-01-01T00:00:01Z").waits);
  EXPECT_FALSE(with("/status/phase", "Failed").waits);
  EXPECT_FALSE(with("/metadata/deletionTimestamp", "2026-01-01T00:00:01Z").waits);
  EXPECT_FALSE(with("/status/containerStatuses", Json::array({Json::object()})).waits);
  EXPECT_FALSE(with("/metadata/annotations/NEURON_ALLOCATED", "true").is_placed());
  EXPECT_FALSE(with("/metadata/annotations/NEURON_ALLOC_TIME", "soon").time.has_value());
}

TEST(PlacedPods, ForeignFormsAreRead) {
  for (const char* text : {R"({})", R"({"spec":7})", R"({"spec":{"containers":[7,{}]},"metadata":{"annotations":[]}})",
                           R"({"metadata":{"annotations":{"AWS_NEURON_IDS":5}}})",
                           R"({"spec":{"containers":[{"resources":{"limits":{"aws.amazon.com/neuron":"-1"}}}]}})"}) {
    EXPECT_FALSE(read(Json::parse(text)).is_placed()) << text;
  }
}

}  // namespace
}  // namespace neuron::plugin
