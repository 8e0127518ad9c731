#include "test/unit/plugin/served_resources_fixture.h"

namespace neuron::plugin {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

// While the kubelet answers a List of the agent, it may count what it is giving as free, and offer it to the next pod
// (docs/reference/kubelet.md#double-allocation).
struct BesideList : ServedResourcesTest {
  const model::Allocation first{"", "", "c", "aws.amazon.com/neuron", {"9"}, "u1"};
  const std::vector<std::string> lost{"9"};

  // Device 9 is given while List is open. Ten seconds pass.
  void give_beside_list() {
    start("trn1.32xlarge");
    pass(5000);
    ask_list();
    ASSERT_TRUE(call(Resource::neuron, lost));
    list_holders();
    admit();
  }
  void ask_list() {
    admissions.want_holders(milliseconds{0});
    kubelet.asked.clear();
    pass(0);
    ASSERT_EQ(kubelet.asked.size(), 1U);
  }
  void admit() {
    checkpoint.allocations = {first};
    write_checkpoint();
    for (int i = 0; i < 10; ++i) {
      pass(1000);
      list_holders({{"default", "first", "c", "aws.amazon.com/neuron", {"9"}}});
    }
  }
  bool call(Resource resource, const std::vector<std::string>& units) {
    allocations.call_began();
    return allocate(resource, units);
  }
  // As DevicePluginService::Allocate, with the kubelet's checkpoint for the list that is sent.
  refusals::OrRefusal<grant::Grant> answer(Resource resource, const std::vector<std::string>& units) {
    allocations.call_began();
    if (allocations.needs_fresh_checkpoint(resource, units)) write_checkpoint();
    EXPECT_FALSE(allocations.needs_second_checkpoint(resource, units)) << "it is long since it was given";
    return allocations.allocate(resource, units);
  }
};

TEST_F(BesideList, WhatTheKubeletOffersAlthoughItIsHeldComesLast) {
  give_beside_list();
  EXPECT_THAT(allocations.prefer(Resource::neuron, {"8", "9", "10"}, {}, 2), Not(Contains("9")));
  EXPECT_EQ(allocations.held_cores(), (std::vector<int>{18, 19})) << "an offer is no proof, however old it is";
  EXPECT_THAT(allocations.prefer(Resource::neuron, {"9"}, {}, 1), ElementsAre("9"));
}

TEST_F(BesideList, WhatIsOfferedAgainIsRefusedWhileTheCheckpointHasIt) {
  give_beside_list();
  ASSERT_THAT(allocations.prefer(Resource::neuron, {"9"}, {}, 1), ElementsAre("9"));
  const auto refused = answer(Resource::neuron, lost);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, refusals::Kind::given_before);
  EXPECT_EQ(allocations.held_cores(), (std::vector<int>{18, 19}));
}

TEST_F(BesideList, WhatIsOfferedAgainIsGivenOnceTheCheckpointLacksIt) {
  give_beside_list();
  ASSERT_THAT(allocations.prefer(Resource::neuron, {"9"}, {}, 1), ElementsAre("9"));
  checkpoint.allocations.clear();
  EXPECT_TRUE(answer(Resource::neuron, lost)) << "its container has ended";
}

// An init container's devices go to the next container of its pod; the kubelet offers them to no other.
TEST_F(BesideList, WhatIsUsedAgainByTheSamePodIsNoSecondGift) {
  give_beside_list();
  ASSERT_THAT(allocations.prefer(Resource::neuron, {"8", "9"}, {"9"}, 2), ElementsAre("8", "9"));
  EXPECT_TRUE(answer(Resource::neuron, {"8", "9"}));
}

TEST_F(BesideList, AListThatIsAskedWhileTheKubeletWaitsCountsToo) {
  start("trn1.32xlarge");
  pass(5000);
  static_cast<void>(allocations.prefer(Resource::neuron, {"9"}, {}, 1));
  ask_list();
  list_holders();
  ASSERT_TRUE(call(Resource::neuron, lost)) << "it has ended by then";
  admit();
  static_cast<void>(allocations.prefer(Resource::neuron, {"9"}, {}, 1));
  EXPECT_FALSE(answer(Resource::neuron, lost));
}

TEST_F(BesideList, WithoutListAnOfferEndsWhatIsOld) {
  start("trn1.32xlarge");
  pass(5000);
  ASSERT_TRUE(call(Resource::neuron, lost));
  admit();
  static_cast<void>(allocations.prefer(Resource::neuron, {"9"}, {}, 1));
  EXPECT_TRUE(allocations.held_cores().empty());
  EXPECT_TRUE(answer(Resource::neuron, lost));
}

TEST_F(BesideList, InterfacesAreGivenLikeDevices) {
  start("trn1.32xlarge");
  pass(5000);
  ask_list();
  const std::string efa = "rdmap16s25";
  ASSERT_TRUE(call(Resource::efa, {efa}));
  list_holders();
  checkpoint.allocations = {{"", "", "c", "vpc.amazonaws.com/efa", {efa}, "u1"}};
  write_checkpoint();
  pass(5000);
  static_cast<void>(allocations.prefer(Resource::efa, {efa}, {}, 1));
  EXPECT_FALSE(answer(Resource::efa, {efa}));
}

// Else nothing would ever show the end of what is held there: a refusal makes the kubelet write nothing.
TEST_F(BesideList, OnANodeWithInterfacesAloneTheirListMakesTheKubeletWrite) {
  start("p5.48xlarge");
  pass(5000);
  const std::size_t before = kubelet.servers.at(Resource::efa)->lists.size();
  admissions.want_checkpoint();
  pass(0);
  EXPECT_EQ(kubelet.servers.at(Resource::efa)->lists.size(), before + 1);
}

TEST_F(BesideList, WithoutACheckpointAnOfferCounts) {
  give_beside_list();
  static_cast<void>(allocations.prefer(Resource::neuron, {"9"}, {}, 1));
  checkpoint.written = 0;
  EXPECT_TRUE(answer(Resource::neuron, lost));
}

}  // namespace
}  // namespace neuron::plugin
