#include "plugin/device/allocations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

using testing::HasSubstr;

struct AllocationsTest : testing::Test {
  fakes::FakeClock clock;
  holdings::CheckpointVersion version = 1;  // what the kubelet's checkpoint would tell
  Allocations allocations{grant::GrantOptions{}, [this] { return version; }, clock};
  grant::NodeUnitsPtr node;

  void use(const std::string& type) {
    node = node_of(type);
    allocations.set_node(node);
  }
  void next_container() { ++version; }
  std::vector<std::string> prefer_of_all(model::Resource resource, int size) {
    return allocations.prefer(resource, ids(*node, resource), {}, size);
  }
  std::string cores_env(const Result<grant::Grant>& answer) {
    return answer ? answer->envs.at("NEURON_RT_VISIBLE_CORES") : "refused: " + answer.error().message;
  }
  int healthy(model::Resource resource) {
    const auto list = allocations.unit_list(resource);
    return static_cast<int>(std::count_if(list->begin(), list->end(), [](const auto& unit) { return unit.healthy; }));
  }
};

TEST_F(AllocationsTest, GivesDeviceNodesAndContainerLocalCores) {
  use("trn1.32xlarge");
  const auto answer = allocations.allocate(model::Resource::neuroncore, {"7", "5", "6"});
  EXPECT_EQ(cores_env(answer), "1-3");
  ASSERT_EQ(answer->device_nodes.size(), 2U);
  EXPECT_EQ(answer->device_nodes[0].host_path, "/dev/neuron2");
  EXPECT_EQ(answer->device_nodes[1].container_path, "/dev/neuron3");
  EXPECT_EQ(answer->envs.size(), 1U);
}

TEST_F(AllocationsTest, HostNumberingAndPathPrefixAreOptions) {
  Allocations other(
      {"/sim", grant::CoreNumbering::host, true}, [] { return 0; }, clock);
  other.set_node(node_of("trn1.32xlarge"));
  const auto answer = other.allocate(model::Resource::neuron, {"3"});
  EXPECT_EQ(cores_env(answer), "6-7");
  EXPECT_EQ(answer->device_nodes[0].host_path, "/sim/dev/neuron3");
  EXPECT_EQ(answer->device_nodes[0].container_path, "/dev/neuron3");
  EXPECT_EQ(answer->cdi_names, (std::vector<std::string>{"aws.amazon.com/neuron=3"}));
}

TEST_F(AllocationsTest, EfaGetsExactlyItsVerbsNodes) {
  use("trn1.32xlarge");
  const auto answer = allocations.allocate(model::Resource::efa, {node->id_of(model::Resource::efa, 0)});
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->device_nodes.size(), 1U);
  EXPECT_EQ(answer->device_nodes[0].container_path, "/dev/infiniband/uverbs7");
  EXPECT_TRUE(answer->envs.empty());
}

TEST_F(AllocationsTest, BadIdsAreRefusedAndChangeNothing) {
  use("trn1.32xlarge");
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{}, {"99"}, {"0", "0"}, {"0", "rdmap16s25"}, {""}}) {
    const auto answer = allocations.allocate(model::Resource::neuron, bad);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(allocations.holds_anything());
}

TEST_F(AllocationsTest, AnUnhealthyUnitIsRefusedWithItsReason) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.devices[3].health = {model::HealthState::unhealthy, "sram_ecc_uncorrected", "3 SRAM errors",
                                      "replace it"};
  allocations.set_node(std::make_shared<const grant::NodeUnits>(snapshot));
  const auto answer = allocations.allocate(model::Resource::neuroncore, {"6"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::failed_precondition);
  EXPECT_THAT(answer.error().message, HasSubstr("3 SRAM errors; replace it"));
  EXPECT_FALSE(allocations.holds_anything());
}

TEST_F(AllocationsTest, HardwareHeldThroughAnotherResourceIsRefusedNamingTheHolder) {
  use("trn1.32xlarge");
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"2"}));
  next_container();
  const auto early = allocations.allocate(model::Resource::neuroncore, {"4"});
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::failed_precondition);
  clock.advance(std::chrono::seconds(1));
  allocations.reconcile({{{"default", "train", "worker", "aws.amazon.com/neuron", {"2"}}}, clock.now(), {}, 0});
  EXPECT_THAT(allocations.allocate(model::Resource::neuroncore, {"5"}).error().message,
              HasSubstr("core 5 is held by default/train/worker through aws.amazon.com/neuron"));
  EXPECT_TRUE(allocations.allocate(model::Resource::neuroncore, {"6"}));
}

TEST_F(AllocationsTest, OneContainerMayAskForTheWholeNodeThroughBothInEitherOrder) {
  use("trn1.32xlarge");
  for (const auto& [first, second] : {std::pair(model::Resource::neuron, model::Resource::neuroncore),
                                      std::pair(model::Resource::neuroncore, model::Resource::neuron)}) {
    allocations.reconcile({{}, clock.now() + std::chrono::hours(1), {}, 0});
    next_container();
    EXPECT_EQ(cores_env(allocations.allocate(first, ids(*node, first))), "0-31");
    EXPECT_EQ(cores_env(allocations.allocate(second, ids(*node, second))), "0-31");
    EXPECT_EQ(healthy(model::Resource::neuron), 16);
    EXPECT_EQ(healthy(model::Resource::neuroncore), 32);
  }
}

TEST_F(AllocationsTest, TheSecondResourceOfAContainerIsSteeredOntoTheSameHardware) {
  use("trn1.32xlarge");
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"9", "10"}));
  const auto preferred = prefer_of_all(model::Resource::neuroncore, 4);
  EXPECT_EQ(preferred, (std::vector<std::string>{"18", "19", "20", "21"}));
  EXPECT_EQ(cores_env(allocations.allocate(model::Resource::neuroncore, preferred)), "0-3");
}

TEST_F(AllocationsTest, DifferentHardwareInOneContainerIsRefusedInWords) {
  use("trn1.32xlarge");
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"0", "1"}));
  const auto answer = allocations.allocate(model::Resource::neuroncore, prefer_of_all(model::Resource::neuroncore, 2));
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("same hardware"));
  EXPECT_TRUE(allocations.allocate(model::Resource::neuroncore, {"30"}))
      << "the refusal ended that admission: this is another pod";
}

TEST_F(AllocationsTest, AnyRefusalEndsTheAdmissionItBelongsTo) {
  use("trn1.32xlarge");
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"99"}, {"31", "31"}, {}}) {
    ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"0", "1"}));
    ASSERT_FALSE(allocations.allocate(model::Resource::neuroncore, bad));
    EXPECT_TRUE(allocations.allocate(model::Resource::neuroncore, {"30"}))
        << "another pod, and no checkpoint between them";
    next_container();
    allocations.reconcile({{}, clock.now() + std::chrono::hours(1), {}, 0});
  }
}

// A pod refused half-way by the kubelet writes no checkpoint; one that asks for different hardware does not either.
// Only a checkpoint written while the kubelet waits tells one from the other.
TEST_F(AllocationsTest, BeforeARefusalTheKubeletsCheckpointDecides) {
  use("trn1.32xlarge");
  const auto answer_after = [&](const std::vector<model::Allocation>& written) {
    EXPECT_TRUE(allocations.allocate(model::Resource::neuron, {"0", "1"}));
    EXPECT_TRUE(allocations.needs_fresh_checkpoint(model::Resource::neuroncore, {"30"}));
    clock.advance(std::chrono::milliseconds(1001));
    allocations.confirm({}, version, clock.now());  // the checkpoint of before: says nothing
    next_container();
    allocations.confirm(written, version, clock.now());
    const auto answer = cores_env(allocations.allocate(model::Resource::neuroncore, {"30"}));
    allocations.reconcile({{}, clock.now() + std::chrono::hours(1), {}, 0});
    next_container();
    return answer;
  };
  EXPECT_EQ(answer_after({}), "0") << "its first half was another's, who is gone";
  const model::Allocation first{"", "", "c", "aws.amazon.com/neuron", {"0", "1"}, "u1"};
  EXPECT_THAT(answer_after({first}), HasSubstr("same hardware"));
  EXPECT_THAT(answer_after({first, {"", "", "c", "aws.amazon.com/neuron", {"7"}, "u0"}}), HasSubstr("same hardware"));
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"15"}));
  EXPECT_FALSE(allocations.needs_fresh_checkpoint(model::Resource::neuroncore, {"30", "31"})) << "the same silicon";
  EXPECT_FALSE(allocations.needs_fresh_checkpoint(model::Resource::neuroncore, {"99"})) << "refused whoever holds what";
  EXPECT_FALSE(allocations.needs_fresh_checkpoint(model::Resource::efa, {node->id_of(model::Resource::efa, 0)}));
  next_container();
  EXPECT_TRUE(allocations.needs_fresh_checkpoint(model::Resource::neuroncore, {"30"}));
  EXPECT_THAT(cores_env(allocations.allocate(model::Resource::neuroncore, {"30"})), HasSubstr("is held by"))
      << "nothing was written";
}

// The kubelet's writes may land out of order, within a second of what they show.
TEST_F(AllocationsTest, OfAYoungContainerACheckpointProvesNothing) {
  use("trn1.32xlarge");
  const auto answer_after = [&](std::chrono::milliseconds age) {
    allocations.reconcile({{}, clock.now() + std::chrono::hours(1), {}, 0});
    EXPECT_TRUE(allocations.allocate(model::Resource::neuroncore, {"18"}));
    next_container();
    clock.advance(age);
    EXPECT_TRUE(allocations.needs_fresh_checkpoint(model::Resource::neuron, {"9"}));
    next_container();
    allocations.confirm({}, version, clock.now());
    const auto decided_at = allocations.needs_second_checkpoint(model::Resource::neuron, {"9"});
    EXPECT_EQ(decided_at.has_value(), age <= Ledger::kMaxWriteDelay);
    EXPECT_GT(decided_at.value_or(SteadyTime::max()) - clock.now(), Ledger::kMaxWriteDelay - age);
    return cores_env(allocations.allocate(model::Resource::neuron, {"9"}));
  };
  EXPECT_THAT(answer_after(Ledger::kMaxWriteDelay), HasSubstr("core 18 is held by"));
  EXPECT_EQ(answer_after(Ledger::kMaxWriteDelay + std::chrono::milliseconds(1)), "0-1");
}

// When a pod leaves List, the checkpoint may show units of it that List had shown: they are no younger for that.
TEST_F(AllocationsTest, AnEntryIsOlderThanTheCheckpointThatShowsIt) {
  use("trn1.32xlarge");
  clock.advance(std::chrono::seconds(20));
  const SteadyTime written_at = clock.now() - std::chrono::seconds(10);
  const model::Allocation init{"", "", "init", "aws.amazon.com/neuroncore", {"18"}, "u1"};
  allocations.reconcile({{}, clock.now(), {init}, 7, {}, {}, written_at});
  EXPECT_TRUE(allocations.holds_anything());
  clock.advance(std::chrono::milliseconds(2));
  allocations.reconcile({{}, clock.now() - std::chrono::milliseconds(2), {}, 8, {}, {}, clock.now()});
  EXPECT_FALSE(allocations.holds_anything());
}

TEST_F(AllocationsTest, AnAdmissionGoesOnUnderTheVersionOfTheCheckpointThatWasAskedFor) {
  use("trn1.32xlarge");
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"3"}));  // of a pod that has ended
  clock.advance(std::chrono::seconds(20));
  next_container();
  ASSERT_TRUE(allocations.allocate(model::Resource::efa, {node->id_of(model::Resource::efa, 0)}));
  ASSERT_TRUE(allocations.needs_fresh_checkpoint(model::Resource::neuroncore, {"6", "7"}));
  next_container();
  allocations.confirm({{"", "", "c", "vpc.amazonaws.com/efa", {node->id_of(model::Resource::efa, 0)}, "u1"}}, version,
                      clock.now());
  next_container();  // written once more, before the answer
  EXPECT_EQ(cores_env(allocations.allocate(model::Resource::neuroncore, {"6", "7"})), "0-1");
  EXPECT_EQ(cores_env(allocations.allocate(model::Resource::neuron, {"3"})), "0-1") << "the same container's";
}

TEST_F(AllocationsTest, WithholdsWhatIsHeldThroughAnotherResourceOnly) {
  use("trn1.32xlarge");
  EXPECT_FALSE(allocations.withholds(model::Resource::neuroncore));
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"0"}));
  EXPECT_TRUE(allocations.withholds(model::Resource::neuroncore));
  EXPECT_FALSE(allocations.withholds(model::Resource::neuron));
  ASSERT_TRUE(allocations.allocate(model::Resource::neuroncore, {"0", "1"}));
  EXPECT_FALSE(allocations.withholds(model::Resource::neuroncore)) << "the same container's";
  EXPECT_FALSE(allocations.withholds(model::Resource::efa));
}

TEST_F(AllocationsTest, TheNextContainerIsSteeredAwayFromHeldHardware) {
  use("trn1.32xlarge");
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"0"}));
  next_container();
  for (const std::string& id : prefer_of_all(model::Resource::neuroncore, 30)) {
    EXPECT_NE(id, "0");
    EXPECT_NE(id, "1");
  }
}

TEST_F(AllocationsTest, ADeviceHeldThroughOneResourceLeavesTheOthersList) {
  use("trn1.32xlarge");
  ASSERT_TRUE(allocations.allocate(model::Resource::neuroncore, {"0"}));
  EXPECT_EQ(healthy(model::Resource::neuron), 15);
  EXPECT_EQ(healthy(model::Resource::neurondevice), 15);
  EXPECT_EQ(healthy(model::Resource::neuroncore), 32);
  clock.advance(std::chrono::seconds(1));
  allocations.reconcile({{}, clock.now(), {}, 0});
  EXPECT_EQ(healthy(model::Resource::neuron), 16);
}

// The kubelet rebuilds its set of free units while an answer is on its way, and offers the pod's next container what
// the first one has just got. Slow answers may lie half a second apart.
TEST_F(AllocationsTest, AnOfferOfWhatThePodWasJustGivenDoesNotEndItsContainer) {
  use("trn1.32xlarge");
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"6"}));
  next_container();
  clock.advance(std::chrono::milliseconds(460));
  static_cast<void>(allocations.prefer(model::Resource::neuron, {"1", "6", "12"}, {}, 1));
  EXPECT_EQ(healthy(model::Resource::neuroncore), 30) << "the cores of device 6 are in use";
}

TEST_F(AllocationsTest, ANicThatIsOfferedAgainFreesTheDevicesOfItsOldContainer) {
  use("trn1.32xlarge");
  for (const std::string& device : ids(*node, model::Resource::neuron)) {
    ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {device}));
    if (std::stoi(device) < 8) {
      ASSERT_TRUE(allocations.allocate(model::Resource::efa, {node->id_of(model::Resource::efa, std::stoi(device))}));
    }
    next_container();
  }
  clock.advance(kMaxAdmission + std::chrono::milliseconds(1));
  static_cast<void>(allocations.prefer(model::Resource::efa, {node->id_of(model::Resource::efa, 3)}, {}, 1));
  EXPECT_EQ(healthy(model::Resource::neuroncore), 2)
      << "the container of NIC 3 has ended, and with it its hold on device 3";
}

// A pod of the next batch may come a second after one that has ended, and ask for its NICs first.
TEST_F(AllocationsTest, NicsThatAreOfferedAgainAreChosenBesideTheDevicesOfTheirOldContainers) {
  use("trn1.32xlarge");
  std::vector<std::string> devices = ids(*node, model::Resource::neuron);
  std::vector<std::string> nics = ids(*node, model::Resource::efa);
  const auto give = [&](model::Resource resource, std::vector<std::string>& free, int size) {
    const std::vector<std::string> given = allocations.prefer(resource, free, {}, size);
    EXPECT_TRUE(allocations.allocate(resource, given));
    std::erase_if(free,
                  [&](const std::string& id) { return std::find(given.begin(), given.end(), id) != given.end(); });
    return given;
  };
  while (!devices.empty()) {
    static_cast<void>(give(model::Resource::neuron, devices, 4));
    static_cast<void>(give(model::Resource::efa, nics, 2));
    next_container();
  }
  clock.advance(std::chrono::seconds(1));
  devices = ids(*node, model::Resource::neuron);
  nics = ids(*node, model::Resource::efa);
  const std::vector<std::string> first = give(model::Resource::efa, nics, 2);
  std::set<std::string> near;
  for (const std::string& device : give(model::Resource::neuron, devices, 4)) {
    const auto& efas = node->topology().devices.at(static_cast<std::size_t>(std::stoi(device))).near_efas;
    for (const int efa : efas) near.insert(node->id_of(model::Resource::efa, efa));
  }
  EXPECT_EQ(near, std::set<std::string>(first.begin(), first.end()));
}

TEST_F(AllocationsTest, NicsFollowTheDevicesOfTheSameContainer) {
  use("trn2.48xlarge");
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"4"}));
  EXPECT_EQ(prefer_of_all(model::Resource::efa, 1),
            (std::vector<std::string>{"rdmap108s0"}));  // 6c:00.0, the official table
  next_container();
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"0", "1", "2", "3"}));
  const auto nics = prefer_of_all(model::Resource::efa, 4);
  EXPECT_THAT(nics, testing::UnorderedElementsAre("rdmap201s0", "rdmap180s0", "rdmap179s0", "rdmap202s0"));
}

// Four devices with one NIC, on a node whose first group is broken: a NIC that is asked for first would be one beside
// the broken group's last pair, unless the allocations remembers how large such containers are.
TEST_F(AllocationsTest, ANicThatComesFirstIsChosenForTheSizeThatSuchContainersHad) {
  use("trn1.32xlarge");
  std::vector<std::string> others = ids(*node, model::Resource::neuron);
  others.erase(others.begin());
  const auto nic_before_four_devices = [&] {
    next_container();
    const auto nic = prefer_of_all(model::Resource::efa, 1);
    EXPECT_TRUE(allocations.allocate(model::Resource::efa, nic));
    const auto devices = allocations.prefer(model::Resource::neuron, others, {}, 4);
    EXPECT_TRUE(allocations.allocate(model::Resource::neuron, devices));
    bool beside = false;
    for (const std::string& device : devices) {
      const auto& near = node->topology().devices.at(static_cast<std::size_t>(std::stoi(device))).near_efas;
      beside = beside ||
               std::find(near.begin(), near.end(), *node->unit_of(model::Resource::efa, nic.front())) != near.end();
    }
    clock.advance(std::chrono::seconds(20));
    allocations.reconcile({{{"a", "holder", "c", "aws.amazon.com/neuron", {"0"}}}, clock.now(), {}, 0});
    return beside;
  };
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"0"}));
  static_cast<void>(nic_before_four_devices());
  EXPECT_TRUE(nic_before_four_devices());
}

TEST_F(AllocationsTest, WhatHasFailedIsNotPreferredThoughTheKubeletStillOffersIt) {
  auto snapshot = snapshot_of("trn1.32xlarge");
  snapshot->host.devices[0].health.state = model::HealthState::unhealthy;
  node = std::make_shared<const grant::NodeUnits>(std::move(snapshot));
  allocations.set_node(node);
  EXPECT_THAT(prefer_of_all(model::Resource::neuron, 15), testing::Not(testing::Contains("0")));
  EXPECT_EQ(prefer_of_all(model::Resource::neuron, 16).size(), 16U) << "an answer all the same";
}

TEST_F(AllocationsTest, AViewWithFewerCoresMakesNoOldKnowledgeDangerous) {
  use("trn2.48xlarge");
  auto list = *allocations.unit_list(model::Resource::neuroncore);
  list.back().healthy = false;
  allocations.note_published(model::Resource::neuroncore, list);
  ASSERT_TRUE(allocations.allocate(model::Resource::neuroncore, {list.back().id, list[list.size() - 2].id}));
  use("trn1.32xlarge");
  EXPECT_EQ(prefer_of_all(model::Resource::neuron, 1).size(), 1U);
  EXPECT_EQ(prefer_of_all(model::Resource::neuroncore, 2).size(), 2U);
  EXPECT_EQ(prefer_of_all(model::Resource::efa, 2).size(), 2U);
}

TEST_F(AllocationsTest, HardwareThatTheKubeletWithholdsThroughAnotherResourceIsTakenLast) {
  use("trn1.32xlarge");
  EXPECT_EQ(prefer_of_all(model::Resource::neuron, 1), (std::vector<std::string>{"0"}));
  auto list = *allocations.unit_list(model::Resource::neuroncore);
  list[0].healthy = list[1].healthy = false;  // freed since, but the kubelet has not been told yet
  allocations.note_published(model::Resource::neuroncore, list);
  EXPECT_NE(prefer_of_all(model::Resource::neuron, 1), (std::vector<std::string>{"0"}));
  EXPECT_EQ(prefer_of_all(model::Resource::neuron, 16).size(), 16U);
}

TEST_F(AllocationsTest, DevicesFollowTheNicsOfTheSameContainer) {
  use("trn2.48xlarge");
  ASSERT_TRUE(allocations.allocate(model::Resource::efa, {"rdmap108s0"}));
  EXPECT_EQ(prefer_of_all(model::Resource::neuron, 1), (std::vector<std::string>{"4"}));
}

TEST_F(AllocationsTest, PreferAnswersEvenNonsense) {
  use("trn1.32xlarge");
  EXPECT_TRUE(allocations.prefer(model::Resource::neuron, {}, {}, 4).empty());
  EXPECT_TRUE(allocations.prefer(model::Resource::neuron, {"a", "b"}, {"c"}, 1).empty());
  EXPECT_TRUE(allocations.prefer(model::Resource::neuron, {"0", "1"}, {}, -5).empty());
  EXPECT_EQ(allocations.prefer(model::Resource::neuron, {"0", "1"}, {}, 5).size(), 2U);
  Allocations blind(
      {}, [] { return 0; }, clock);
  EXPECT_TRUE(blind.prefer(model::Resource::neuron, {"0"}, {}, 1).empty());
  EXPECT_EQ(blind.allocate(model::Resource::neuron, {"0"}).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace neuron::plugin
