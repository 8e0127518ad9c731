#include "test/unit/plugin/served_resources_fixture.h"

namespace neuron::plugin {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST_F(ServedResourcesTest, RegistersWhatTheNodeHasOnceItKnowsWhoHoldsWhat) {
  scan("inf2.48xlarge");
  find_directory();
  EXPECT_THAT(kubelet.asked, ElementsAre(clock.now()));
  EXPECT_THAT(kubelet.registering, IsEmpty());
  list_holders();
  EXPECT_THAT(register_all(), UnorderedElementsAre(Resource::neuroncore, Resource::neuron, Resource::neurondevice))
      << "and no interface, as this node has none";
  EXPECT_EQ(kubelet.servers.at(Resource::neuron)->lists.at(0)->size(), 12U);
}

TEST_F(ServedResourcesTest, AFirstListThatFailsIsNoKnowledgeAndIsAskedForAgain) {
  scan("inf2.48xlarge");
  find_directory();
  fail_list();
  EXPECT_THAT(kubelet.registering, IsEmpty()) << "pods may hold hardware by claims";
  pass(1000);
  EXPECT_EQ(kubelet.asked.size(), 2U);
  const model::Allocation claim{"team", "train", "main", "neuron.aws.com", {"neuron-device-3"}, "", "chips"};
  list_holders({claim});
  EXPECT_EQ(register_all().size(), 3U);
  EXPECT_EQ(unhealthy(Resource::neuron), 1U) << "in the first list already";
}

TEST_F(ServedResourcesTest, AListThatGoesOnFailingIsNotWaitedForLongButAskedForAgain) {
  scan("inf2.48xlarge");
  find_directory();
  for (int i = 0; i < 4; ++i) {
    fail_list();
    pass(1000);
  }
  EXPECT_THAT(kubelet.registering, IsEmpty());
  pass(1000);
  fail_list();
  EXPECT_EQ(register_all().size(), 3U) << "a node without List serves all the same";
  write_checkpoint();
  kubelet.asked.clear();
  pass(1000);
  pass(10'000);
  EXPECT_EQ(kubelet.asked.size(), 1U) << "although nothing is held";
  list_holders({{"team", "train", "main", "neuron.aws.com", {"neuron-device-3"}, "", "chips"}});
  pass(1000);
  EXPECT_EQ(unhealthy(Resource::neuron), 1U);
}

TEST_F(ServedResourcesTest, InAPodAListWithoutItIsNoKnowledge) {
  ServedResources in_pod{{"1-a", std::chrono::seconds(10), {}, "agent-x"},
                         {clock, allocations, admissions, checkpoint, kubelet}};
  const auto list = [&](std::vector<model::Allocation> pods) {
    in_pod.handle(HoldersListed{clock.now(), std::move(pods)});
  };
  allocations.set_node(node_of("inf2.48xlarge"));
  list({});
  EXPECT_THAT(kubelet.registering, IsEmpty());
  clock.advance(milliseconds{1000});
  in_pod.run_due(admissions.progress());
  EXPECT_EQ(kubelet.asked.size(), 1U);
  list({{"kube-system", "agent-x", "", "", {}}});
  EXPECT_EQ(kubelet.registering.size(), 3U);
}

// Not in a pod, on a node whose kubelet has a record of prepared claims.
struct ClaimsExpected : ServedResourcesTest {
  ServedResources outside{{"1-a", std::chrono::seconds(10), {}, "", true},
                          {clock, allocations, admissions, checkpoint, kubelet}};
  const model::Allocation claim{"team", "train", "main", "neuron.aws.com", {"neuron-device-3"}, "", "chips"};
  const model::Allocation other{"team", "serve", "main", "gpu.example.com", {"gpu-0"}, "", "gpus"};

  ClaimsExpected() { allocations.set_node(node_of("inf2.48xlarge")); }
  void after(milliseconds later, std::vector<model::Allocation> pods) {
    clock.advance(later);
    outside.run_due(admissions.progress());
    outside.handle(HoldersListed{clock.now(), std::move(pods)});
  }
};

TEST_F(ClaimsExpected, AListIsNoKnowledgeUntilTwoApartShowTheSameClaims) {
  after(milliseconds{0}, {});
  after(milliseconds{1000}, {other});
  after(milliseconds{1000}, {other, claim});
  after(milliseconds{4000}, {claim, other});
  EXPECT_THAT(kubelet.registering, IsEmpty());
  EXPECT_EQ(kubelet.asked.size(), 3U) << "every second";
  after(milliseconds{1000}, {claim, other});
  EXPECT_EQ(kubelet.registering.size(), 3U);
  EXPECT_FALSE(allocations.allocate(Resource::neuron, {"3"}));
  EXPECT_TRUE(allocations.allocate(Resource::neuron, {"4"}));
}

TEST_F(ClaimsExpected, ButNeverShownItIsNotWaitedForLongButAskedForAgain) {
  for (int i = 0; i < 30; ++i) after(milliseconds{1000}, {});
  EXPECT_THAT(kubelet.registering, IsEmpty());
  after(milliseconds{1000}, {});
  EXPECT_EQ(kubelet.registering.size(), 3U);
  const auto asked = kubelet.asked.size();
  after(milliseconds{10000}, {claim});
  EXPECT_EQ(kubelet.asked.size(), asked + 1);
  EXPECT_FALSE(allocations.allocate(Resource::neuron, {"3"})) << "listed late";
}

// A kubelet that has just started lists nothing until it has read its pods from the API server.
TEST_F(ServedResourcesTest, AListThatIsEmptyOnceEndsNoClaim) {
  scan("trn1.32xlarge");
  find_directory();
  list_holders({{"team", "train", "main", "neuron.aws.com", {"neuron-device-3"}, "", "chips"}});
  register_all();
  write_checkpoint();
  restart_kubelet();
  list_holders();
  register_all();
  write_checkpoint();
  pass(1000);
  EXPECT_EQ(unhealthy(Resource::neuron), 1U);
  EXPECT_FALSE(allocate(Resource::neuron, {"3"}));
}

TEST_F(ServedResourcesTest, WithoutAKubeletNothingIsRegisteredUntilItsSocketAppears) {
  kubelet.identity = 0;
  start("trn1.32xlarge");
  EXPECT_EQ(kubelet.made, 0);
  restart_kubelet();
  EXPECT_EQ(register_all().size(), 4U);
}

TEST_F(ServedResourcesTest, AnotherKubeletMakesNewEndpointsOfThoseThatItHasWiped) {
  start("trn1.32xlarge");
  const std::string before = kubelet.servers.at(Resource::neuron)->endpoint();
  restart_kubelet();
  EXPECT_EQ(register_all().size(), 4U);
  EXPECT_NE(kubelet.servers.at(Resource::neuron)->endpoint(), before);
}

TEST_F(ServedResourcesTest, ASocketOfOursThatVanishesIsReplaced) {
  start("trn1.32xlarge");
  const std::string gone = kubelet.servers.at(Resource::efa)->endpoint();
  std::erase(kubelet.sockets, gone);
  KubeletDirectory::Changes changes;
  changes.sockets.push_back({SocketWatch::Event::Kind::vanished, gone});
  manager.handle(changes);
  EXPECT_THAT(register_all(), ElementsAre(Resource::efa));
}

TEST_F(ServedResourcesTest, ARegistrationThatFailsIsTriedAgainEverMoreRarely) {
  scan("inf2.48xlarge");
  find_directory();
  list_holders();
  const Error refused{ErrorCode::unavailable, "no"};
  register_all(refused);
  EXPECT_THAT(register_all(refused), IsEmpty());
  for (const int wait : {20, 40, 80}) {
    pass(wait - 1);
    EXPECT_THAT(register_all(refused), IsEmpty());
    pass(1);
    EXPECT_EQ(register_all(refused).size(), 3U);
  }
}

TEST_F(ServedResourcesTest, ARegistrationIsNotTriedAgainWhileThereIsNoKubelet) {
  start("inf2.48xlarge");
  kubelet.identity = 0;
  kubelet.watches = false;
  manager.handle(StreamEnded{Resource::neuron});
  kubelet.watches = true;
  for (int i = 0; i < 20; ++i) pass(1000);
  EXPECT_THAT(register_all(), IsEmpty());
  kubelet.identity = 2;
  pass(5000);
  EXPECT_THAT(register_all(), ElementsAre(Resource::neuron)) << "whether its socket was reported or not";
}

// A kubelet that has just started has wiped the directory, and inotify has not reported it. It would accept the socket
// that is gone, fail to dial it for 10 s and then forget what has registered since.
TEST_F(ServedResourcesTest, ASocketThatIsGoneIsNotRegisteredAgain) {
  start("inf2.48xlarge");
  const std::string gone = kubelet.servers.at(Resource::neuron)->endpoint();
  kubelet.watches = false;
  manager.handle(StreamEnded{Resource::neuron});
  ++kubelet.identity;
  kubelet.sockets.clear();
  pass(20);
  ASSERT_EQ(kubelet.registering.size(), 1U);
  EXPECT_NE(kubelet.registering[0].endpoint, gone);
  EXPECT_TRUE(kubelet.exists(kubelet.registering[0].endpoint));
}

TEST_F(ServedResourcesTest, AKubeletThatDoesNotWatchIsToldAgain) {
  start("inf2.48xlarge");
  kubelet.watches = false;
  pass(1000);
  pass(20);
  EXPECT_EQ(register_all().size(), 3U);
}

TEST_F(ServedResourcesTest, AStreamThatTheKubeletEndsIsRegisteredAnew) {
  start("inf2.48xlarge");
  kubelet.watches = false;
  manager.handle(StreamEnded{Resource::neuron});
  pass(20);
  EXPECT_THAT(register_all(), ElementsAre(Resource::neuron));
}

TEST_F(ServedResourcesTest, AnOlderStreamMayEndWhileANewerOneLives) {
  start("inf2.48xlarge");
  manager.handle(StreamEnded{Resource::neuron});
  pass(20);
  EXPECT_THAT(register_all(), IsEmpty());
}

TEST_F(ServedResourcesTest, HardwareThatAppearsIsRegistered) {
  start("inf2.48xlarge");
  scan("trn1.32xlarge");
  EXPECT_THAT(register_all(), ElementsAre(Resource::efa));
}

TEST_F(ServedResourcesTest, WithoutRoomForASocketItIsTriedAgain) {
  kubelet.no_room = true;
  start("inf2.48xlarge");
  EXPECT_EQ(kubelet.made, 0);
  kubelet.no_room = false;
  pass(20);
  EXPECT_EQ(register_all().size(), 3U);
}

// What one name gives leaves the other name's list, but not before the container's checkpoint is written.
TEST_F(ServedResourcesTest, AChangedListGoesOutWhenTheAdmissionIsOver) {
  start("trn1.32xlarge");
  ASSERT_TRUE(allocate(Resource::neuroncore, {"0"}));
  pass(300);
  EXPECT_EQ(unhealthy(Resource::neuron), 0U) << "the container may still ask for the device";
  write_checkpoint();
  pass(0);
  EXPECT_EQ(unhealthy(Resource::neuron), 1U);
  EXPECT_EQ(kubelet.servers.at(Resource::neuroncore)->lists.size(), 1U) << "its list has not changed";
}

// A retry found the next kubelet before inotify told of its socket; that its first pod is half admitted is not
// forgotten.
TEST_F(ServedResourcesTest, AKubeletThatWasMetBeforeItsSocketWasToldOfIsNoNewOne) {
  start("inf2.48xlarge");
  ++kubelet.identity;
  kubelet.watches = false;
  for (const Resource resource : {Resource::neuroncore, Resource::neuron, Resource::neurondevice}) {
    manager.handle(StreamEnded{resource});
  }
  pass(20);
  kubelet.watches = true;
  ASSERT_EQ(register_all().size(), 3U);
  ASSERT_TRUE(allocate(Resource::neuroncore, {"0"}));
  KubeletDirectory::Changes changes;
  changes.kubelet_appeared = true;
  manager.handle(changes);
  pass(300);
  EXPECT_EQ(unhealthy(Resource::neuron), 0U) << "no list goes out before the checkpoint is written";
  EXPECT_THAT(register_all(), IsEmpty());
}

TEST_F(ServedResourcesTest, WhoHoldsWhatIsAskedForAfterAnAnswer) {
  start("trn1.32xlarge");
  kubelet.asked.clear();
  ASSERT_TRUE(allocate(Resource::neuron, {"3"}));
  write_checkpoint();
  pass(499);
  EXPECT_THAT(kubelet.asked, IsEmpty());
  pass(1);
  EXPECT_EQ(kubelet.asked.size(), 1U);
  list_holders({{"default", "train", "worker", "aws.amazon.com/neuron", {"3"}}});
  pass(499);
  EXPECT_EQ(kubelet.asked.size(), 1U);
  pass(1);
  EXPECT_EQ(kubelet.asked.size(), 2U) << "soon again, as its cores are withheld from the other name";
}

// A pod that the kubelet refused for want of something else: a list as it was makes it write its checkpoint.
TEST_F(ServedResourcesTest, AnAdmissionThatStopsHalfWayIsEndedByACheckpoint) {
  start("trn1.32xlarge");
  ASSERT_TRUE(allocate(Resource::efa, {"rdmap16s25"}));
  for (int i = 0; i < 2; ++i) {
    pass(450);
    list_holders();
  }
  EXPECT_TRUE(allocations.holds_anything()) << "List does not show who is still being admitted";
  const auto lists = kubelet.servers.at(Resource::neuroncore)->lists.size();
  pass(100);
  ASSERT_EQ(kubelet.servers.at(Resource::neuroncore)->lists.size(), lists + 1);
  write_checkpoint();
  EXPECT_FALSE(allocations.holds_anything());
}
TEST_F(ServedResourcesTest, ServingTellsWhatIsMissing) {
  EXPECT_FALSE(manager.serving().scanned);
  scan("inf2.48xlarge");
  find_directory();
  list_holders();
  const auto steps = [this] {
    std::map<Resource, ServingStep> all;
    for (const ResourceReadiness& one : manager.serving().resources) all[one.resource] = one.step;
    return all;
  };
  EXPECT_EQ(steps().at(Resource::neuron), ServingStep::registering);
  EXPECT_EQ(steps().at(Resource::efa), ServingStep::not_offered);
  register_all();
  EXPECT_EQ(steps().at(Resource::neuron), ServingStep::registered);
  kubelet.watches = false;
  EXPECT_EQ(steps().at(Resource::neuron), ServingStep::unwatched);
}

}  // namespace
}  // namespace neuron::plugin
