#include "plugin/device/allocation_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/fakes/fake_clock.h"
#include "test/unit/plugin/views.h"

namespace neuron::plugin {
namespace {

using testing::HasSubstr;

struct Desk : testing::Test {
  fakes::FakeClock clock;
  holdings::AdmissionMark mark = 1;  // what the kubelet's checkpoint would tell
  AllocationDesk desk{ResponseOptions{}, [this] { return mark; }, clock};
  NodeViewPtr view;

  void node(const std::string& type) {
    view = view_of(type);
    desk.set_view(view);
  }
  void next_container() { ++mark; }
  std::vector<std::string> prefer_of_all(model::Resource resource, int size) {
    return desk.prefer(resource, ids(*view, resource), {}, size);
  }
  std::string cores_env(const Result<ContainerAnswer>& answer) {
    return answer ? answer->envs.at("NEURON_RT_VISIBLE_CORES") : "refused: " + answer.error().message;
  }
  int healthy(model::Resource resource) {
    const auto list = desk.unit_list(resource);
    return static_cast<int>(std::count_if(list->begin(), list->end(), [](const auto& unit) { return unit.healthy; }));
  }
};

TEST_F(Desk, GivesDeviceNodesAndContainerLocalCores) {
  node("trn1.32xlarge");
  const auto answer = desk.allocate(model::Resource::neuroncore, {"7", "5", "6"});
  EXPECT_EQ(cores_env(answer), "1-3");
  ASSERT_EQ(answer->device_nodes.size(), 2U);
  EXPECT_EQ(answer->device_nodes[0].host_path, "/dev/neuron2");
  EXPECT_EQ(answer->device_nodes[1].container_path, "/dev/neuron3");
  EXPECT_EQ(answer->envs.size(), 1U);
}

TEST_F(Desk, HostNumberingAndPathPrefixAreOptions) {
  AllocationDesk other(
      {"/sim", CoreNumbering::host, true}, [] { return 0; }, clock);
  other.set_view(view_of("trn1.32xlarge"));
  const auto answer = other.allocate(model::Resource::neuron, {"3"});
  EXPECT_EQ(cores_env(answer), "6-7");
  EXPECT_EQ(answer->device_nodes[0].host_path, "/sim/dev/neuron3");
  EXPECT_EQ(answer->device_nodes[0].container_path, "/dev/neuron3");
  EXPECT_EQ(answer->cdi_names, (std::vector<std::string>{"aws.amazon.com/neuron=3"}));
}

TEST_F(Desk, EfaGetsExactlyItsVerbsNodes) {
  node("trn1.32xlarge");
  const auto answer = desk.allocate(model::Resource::efa, {view->id_of(model::Resource::efa, 0)});
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->device_nodes.size(), 1U);
  EXPECT_EQ(answer->device_nodes[0].container_path, "/dev/infiniband/uverbs7");
  EXPECT_TRUE(answer->envs.empty());
}

TEST_F(Desk, BadIdsAreRefusedAndChangeNothing) {
  node("trn1.32xlarge");
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{}, {"99"}, {"0", "0"}, {"0", "rdmap16s25"}, {""}}) {
    const auto answer = desk.allocate(model::Resource::neuron, bad);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(desk.holds_anything());
}

TEST_F(Desk, AnUnhealthyUnitIsRefusedWithItsReason) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.devices[3].health = {model::HealthState::unhealthy, "sram_ecc_uncorrected", "3 SRAM errors",
                                      "replace it"};
  desk.set_view(std::make_shared<const NodeView>(snapshot));
  const auto answer = desk.allocate(model::Resource::neuroncore, {"6"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::failed_precondition);
  EXPECT_THAT(answer.error().message, HasSubstr("3 SRAM errors; replace it"));
  EXPECT_FALSE(desk.holds_anything());
}

TEST_F(Desk, SiliconHeldThroughAnotherResourceIsRefusedNamingTheHolder) {
  node("trn1.32xlarge");
  ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"2"}));
  next_container();
  const auto early = desk.allocate(model::Resource::neuroncore, {"4"});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::failed_precondition);
  clock.advance(std::chrono::seconds(1));
  desk.reconcile({{{"aws.amazon.com/neuron", {"2"}, "default/train/worker"}}, clock.now(), {}, 0});
  EXPECT_THAT(desk.allocate(model::Resource::neuroncore, {"5"}).error().message,
              HasSubstr("core 5 is held by default/train/worker through aws.amazon.com/neuron"));
  EXPECT_TRUE(desk.allocate(model::Resource::neuroncore, {"6"}));
}

TEST_F(Desk, OneContainerMayAskForTheWholeNodeThroughBothInEitherOrder) {
  node("trn1.32xlarge");
  for (const auto& [first, second] : {std::pair(model::Resource::neuron, model::Resource::neuroncore),
                                      std::pair(model::Resource::neuroncore, model::Resource::neuron)}) {
    desk.reconcile({{}, clock.now() + std::chrono::hours(1), {}, 0});
    next_container();
    EXPECT_EQ(cores_env(desk.allocate(first, ids(*view, first))), "0-31");
    EXPECT_EQ(cores_env(desk.allocate(second, ids(*view, second))), "0-31");
    EXPECT_EQ(healthy(model::Resource::neuron), 16);
    EXPECT_EQ(healthy(model::Resource::neuroncore), 32);
  }
}

TEST_F(Desk, TheSecondResourceOfAContainerIsSteeredOntoTheSameSilicon) {
  node("trn1.32xlarge");
  ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"9", "10"}));
  const auto preferred = prefer_of_all(model::Resource::neuroncore, 4);
  EXPECT_EQ(preferred, (std::vector<std::string>{"18", "19", "20", "21"}));
  EXPECT_EQ(cores_env(desk.allocate(model::Resource::neuroncore, preferred)), "0-3");
}

TEST_F(Desk, DifferentSiliconInOneContainerIsRefusedInWords) {
  node("trn1.32xlarge");
  ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"0", "1"}));
  const auto answer = desk.allocate(model::Resource::neuroncore, prefer_of_all(model::Resource::neuroncore, 2));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("same silicon"));
  EXPECT_TRUE(desk.allocate(model::Resource::neuroncore, {"30"}))
      << "the refusal ended that admission: this is another pod";
}

TEST_F(Desk, AnyRefusalEndsTheAdmissionItBelongsTo) {
  node("trn1.32xlarge");
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"99"}, {"31", "31"}, {}}) {
    ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"0", "1"}));
    ASSERT_FALSE(desk.allocate(model::Resource::neuroncore, bad));
    EXPECT_TRUE(desk.allocate(model::Resource::neuroncore, {"30"})) << "another pod, and no checkpoint between them";
    next_container();
    desk.reconcile({{}, clock.now() + std::chrono::hours(1), {}, 0});
  }
}

// A pod refused half-way by the kubelet writes no checkpoint; one that asks for two silicons does not either. Only a
// checkpoint written while the kubelet waits tells one from the other.
TEST_F(Desk, InDoubtTheKubeletsCheckpointDecides) {
  node("trn1.32xlarge");
  const auto answer_after = [&](const std::vector<holdings::ShownHolding>& written) {
    EXPECT_TRUE(desk.allocate(model::Resource::neuron, {"0", "1"}));
    EXPECT_TRUE(desk.doubtful(model::Resource::neuroncore, {"30"}));
    desk.confirm({}, mark);  // the checkpoint of before: says nothing
    next_container();
    desk.confirm(written, mark);
    const auto answer = cores_env(desk.allocate(model::Resource::neuroncore, {"30"}));
    desk.reconcile({{}, clock.now() + std::chrono::hours(1), {}, 0});
    next_container();
    return answer;
  };
  EXPECT_EQ(answer_after({}), "0") << "its first half was another's, who is gone";
  const holdings::ShownHolding first{"aws.amazon.com/neuron", {"0", "1"}, "pod u1/c"};
  EXPECT_THAT(answer_after({first}), HasSubstr("same silicon"));
  EXPECT_THAT(answer_after({first, {"aws.amazon.com/neuron", {"7"}, "pod u0/c"}}), HasSubstr("same silicon"));
  ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"15"}));
  EXPECT_FALSE(desk.doubtful(model::Resource::neuroncore, {"30", "31"})) << "the same silicon";
  EXPECT_FALSE(desk.doubtful(model::Resource::neuroncore, {"99"})) << "refused whoever holds what";
  EXPECT_FALSE(desk.doubtful(model::Resource::efa, {view->id_of(model::Resource::efa, 0)}));
  next_container();
  EXPECT_TRUE(desk.doubtful(model::Resource::neuroncore, {"30"}));
  EXPECT_THAT(cores_env(desk.allocate(model::Resource::neuroncore, {"30"})), HasSubstr("is held by"))
      << "nothing was written";
}

TEST_F(Desk, AnAdmissionGoesOnUnderTheMarkOfTheCheckpointThatWasAskedFor) {
  node("trn1.32xlarge");
  ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"3"}));  // of a pod that has ended
  clock.advance(std::chrono::seconds(20));
  next_container();
  ASSERT_TRUE(desk.allocate(model::Resource::efa, {view->id_of(model::Resource::efa, 0)}));
  ASSERT_TRUE(desk.doubtful(model::Resource::neuroncore, {"6", "7"}));
  next_container();
  desk.confirm({{"vpc.amazonaws.com/efa", {view->id_of(model::Resource::efa, 0)}, "pod u1/c"}}, mark);
  next_container();  // written once more, before the answer
  EXPECT_EQ(cores_env(desk.allocate(model::Resource::neuroncore, {"6", "7"})), "0-1");
  EXPECT_EQ(cores_env(desk.allocate(model::Resource::neuron, {"3"})), "0-1") << "the same container's";
}

TEST_F(Desk, WithholdsWhatIsHeldThroughAnotherResourceOnly) {
  node("trn1.32xlarge");
  EXPECT_FALSE(desk.withholds(model::Resource::neuroncore));
  ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"0"}));
  EXPECT_TRUE(desk.withholds(model::Resource::neuroncore));
  EXPECT_FALSE(desk.withholds(model::Resource::neuron));
  ASSERT_TRUE(desk.allocate(model::Resource::neuroncore, {"0", "1"}));
  EXPECT_FALSE(desk.withholds(model::Resource::neuroncore)) << "the same container's";
  EXPECT_FALSE(desk.withholds(model::Resource::efa));
}

TEST_F(Desk, TheNextContainerIsSteeredAwayFromHeldSilicon) {
  node("trn1.32xlarge");
  ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"0"}));
  next_container();
  for (const std::string& id : prefer_of_all(model::Resource::neuroncore, 30)) {
    EXPECT_NE(id, "0");
    EXPECT_NE(id, "1");
  }
}

TEST_F(Desk, ADeviceHeldThroughOneResourceLeavesTheOthersList) {
  node("trn1.32xlarge");
  ASSERT_TRUE(desk.allocate(model::Resource::neuroncore, {"0"}));
  EXPECT_EQ(healthy(model::Resource::neuron), 15);
  EXPECT_EQ(healthy(model::Resource::neurondevice), 15);
  EXPECT_EQ(healthy(model::Resource::neuroncore), 32);
  clock.advance(std::chrono::seconds(1));
  desk.reconcile({{}, clock.now(), {}, 0});
  EXPECT_EQ(healthy(model::Resource::neuron), 16);
}

TEST_F(Desk, ANicThatIsOfferedAgainFreesTheDevicesOfItsOldContainer) {
  node("trn1.32xlarge");
  for (const std::string& device : ids(*view, model::Resource::neuron)) {
    ASSERT_TRUE(desk.allocate(model::Resource::neuron, {device}));
    if (std::stoi(device) < 8) {
      ASSERT_TRUE(desk.allocate(model::Resource::efa, {view->id_of(model::Resource::efa, std::stoi(device))}));
    }
    next_container();
  }
  clock.advance(std::chrono::seconds(5));
  static_cast<void>(desk.prefer(model::Resource::efa, {view->id_of(model::Resource::efa, 3)}, {}, 1));
  EXPECT_EQ(healthy(model::Resource::neuroncore), 2)
      << "the container of NIC 3 has ended, and with it its hold on device 3";
}

TEST_F(Desk, NicsFollowTheDevicesOfTheSameContainer) {
  node("trn2.48xlarge");
  ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"4"}));
  EXPECT_EQ(prefer_of_all(model::Resource::efa, 1),
            (std::vector<std::string>{"rdmap108s0"}));  // 6c:00.0, the official table
  next_container();
  ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"0", "1", "2", "3"}));
  const auto nics = prefer_of_all(model::Resource::efa, 4);
  EXPECT_THAT(nics, testing::UnorderedElementsAre("rdmap201s0", "rdmap180s0", "rdmap179s0", "rdmap202s0"));
}

// Four devices with one NIC, on a node whose first group is broken: a NIC that is asked for first would be one beside
// the broken group's last pair, unless the desk remembers how large such containers are.
TEST_F(Desk, ANicThatComesFirstIsChosenForTheSizeThatSuchContainersHad) {
  node("trn1.32xlarge");
  std::vector<std::string> others = ids(*view, model::Resource::neuron);
  others.erase(others.begin());
  const auto nic_before_four_devices = [&] {
    next_container();
    const auto nic = prefer_of_all(model::Resource::efa, 1);
    EXPECT_TRUE(desk.allocate(model::Resource::efa, nic));
    const auto devices = desk.prefer(model::Resource::neuron, others, {}, 4);
    EXPECT_TRUE(desk.allocate(model::Resource::neuron, devices));
    bool beside = false;
    for (const std::string& device : devices) {
      const auto& near = view->topology().devices.at(static_cast<std::size_t>(std::stoi(device))).near_efas;
      beside = beside ||
               std::find(near.begin(), near.end(), *view->unit_of(model::Resource::efa, nic.front())) != near.end();
    }
    clock.advance(std::chrono::seconds(20));
    desk.reconcile({{{"aws.amazon.com/neuron", {"0"}, "a/holder/c"}}, clock.now(), {}, 0});
    return beside;
  };
  ASSERT_TRUE(desk.allocate(model::Resource::neuron, {"0"}));
  static_cast<void>(nic_before_four_devices());
  EXPECT_TRUE(nic_before_four_devices());
}

TEST_F(Desk, WhatHasFailedIsNotPreferredThoughTheKubeletStillOffersIt) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.devices[0].health.state = model::HealthState::unhealthy;
  view = std::make_shared<const NodeView>(std::move(snapshot));
  desk.set_view(view);
  EXPECT_THAT(prefer_of_all(model::Resource::neuron, 15), testing::Not(testing::Contains("0")));
  EXPECT_EQ(prefer_of_all(model::Resource::neuron, 16).size(), 16U) << "an answer all the same";
}

TEST_F(Desk, AViewWithFewerCoresMakesNoOldKnowledgeDangerous) {
  node("trn2.48xlarge");
  auto list = *desk.unit_list(model::Resource::neuroncore);
  list.back().healthy = false;
  desk.note_published(model::Resource::neuroncore, list);
  ASSERT_TRUE(desk.allocate(model::Resource::neuroncore, {list.back().id, list[list.size() - 2].id}));
  node("trn1.32xlarge");
  EXPECT_EQ(prefer_of_all(model::Resource::neuron, 1).size(), 1U);
  EXPECT_EQ(prefer_of_all(model::Resource::neuroncore, 2).size(), 2U);
  EXPECT_EQ(prefer_of_all(model::Resource::efa, 2).size(), 2U);
}

TEST_F(Desk, SiliconThatTheKubeletWithholdsThroughAnotherResourceIsTakenLast) {
  node("trn1.32xlarge");
  EXPECT_EQ(prefer_of_all(model::Resource::neuron, 1), (std::vector<std::string>{"0"}));
  auto list = *desk.unit_list(model::Resource::neuroncore);
  list[0].healthy = list[1].healthy = false;  // freed since, but the kubelet has not been told yet
  desk.note_published(model::Resource::neuroncore, list);
  EXPECT_NE(prefer_of_all(model::Resource::neuron, 1), (std::vector<std::string>{"0"}));
  EXPECT_EQ(prefer_of_all(model::Resource::neuron, 16).size(), 16U);
}

TEST_F(Desk, DevicesFollowTheNicsOfTheSameContainer) {
  node("trn2.48xlarge");
  ASSERT_TRUE(desk.allocate(model::Resource::efa, {"rdmap108s0"}));
  EXPECT_EQ(prefer_of_all(model::Resource::neuron, 1), (std::vector<std::string>{"4"}));
}

TEST_F(Desk, PreferAnswersEvenNonsense) {
  node("trn1.32xlarge");
  EXPECT_TRUE(desk.prefer(model::Resource::neuron, {}, {}, 4).empty());
  EXPECT_TRUE(desk.prefer(model::Resource::neuron, {"a", "b"}, {"c"}, 1).empty());
  EXPECT_TRUE(desk.prefer(model::Resource::neuron, {"0", "1"}, {}, -5).empty());
  EXPECT_EQ(desk.prefer(model::Resource::neuron, {"0", "1"}, {}, 5).size(), 2U);
  AllocationDesk blind(
      {}, [] { return 0; }, clock);
  EXPECT_TRUE(blind.prefer(model::Resource::neuron, {"0"}, {}, 1).empty());
  EXPECT_EQ(blind.allocate(model::Resource::neuron, {"0"}).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace neuron::plugin
