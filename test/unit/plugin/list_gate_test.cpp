#include "plugin/device/list_gate.h"

#include <gtest/gtest.h>

#include "test/fakes/fake_clock.h"

namespace neuron::plugin {
namespace {

struct Lists : testing::Test {
  fakes::FakeClock clock;
  ListGate gate{clock};
  int gone = 0;
  bool hold(model::Resource resource = model::Resource::neuron) {
    return gate.hold(resource, [this] { ++gone; });
  }
};

TEST_F(Lists, NothingOnItsWayHoldsNobody) {
  EXPECT_FALSE(hold());
  EXPECT_EQ(gone, 0) << "the caller answers itself";
}

TEST_F(Lists, AnAllocateWaitsForEveryListToBeWritten) {
  gate.sent();
  gate.sent();
  ASSERT_TRUE(hold());
  gate.checkpoint_written();
  EXPECT_EQ(gone, 0);
  gate.checkpoint_written();
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(hold());
}

TEST_F(Lists, AContainersWriteIsNoDebtOfTheNextList) {
  gate.checkpoint_written();
  gate.sent();
  EXPECT_TRUE(hold());
  EXPECT_EQ(gone, 0);
}

TEST_F(Lists, AListThatIsNeverWrittenCostsItsPatienceOnce) {
  gate.sent();
  ASSERT_TRUE(hold());
  EXPECT_EQ(gate.expire(), clock.now() + ListGate::kPatience);
  clock.advance(ListGate::kPatience);
  EXPECT_EQ(gate.expire(), std::nullopt);
  EXPECT_EQ(gone, 1);
  gate.sent();
  EXPECT_FALSE(hold()) << "a kubelet that keeps no checkpoint";
  gate.checkpoint_written();
  gate.sent();
  EXPECT_TRUE(hold()) << "it keeps one after all";
}

TEST_F(Lists, ListsThatKeepComingHoldNobodyForLonger) {
  gate.sent();
  ASSERT_TRUE(hold());
  for (int i = 0; i < 4; ++i) {
    clock.advance(ListGate::kPatience / 4);
    gate.sent();
    static_cast<void>(gate.expire());
  }
  EXPECT_EQ(gone, 1);
}

TEST_F(Lists, WithoutWaitersALateListIsForgottenQuietly) {
  gate.sent();
  clock.advance(ListGate::kPatience);
  EXPECT_EQ(gate.expire(), std::nullopt);
  EXPECT_FALSE(hold());
}

TEST_F(Lists, AnAllocateInDoubtWaitsForTheNextListToBeSentAndWritten) {
  gate.hold_for_next(model::Resource::neuron, [this] { ++gone; });
  EXPECT_TRUE(gate.holds());
  gate.checkpoint_written();
  EXPECT_EQ(gone, 0) << "written before the list was sent";
  gate.sent();
  EXPECT_EQ(gate.expire(), clock.now() + ListGate::kPatience);
  EXPECT_EQ(gone, 0);
  gate.checkpoint_written();
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(gate.holds());
  gate.hold_for_next(model::Resource::neuron, [this] { ++gone; });
  clock.advance(ListGate::kPatience);
  EXPECT_EQ(gate.expire(), std::nullopt);
  EXPECT_EQ(gone, 2) << "nobody was there to send it to";
}

TEST_F(Lists, AnotherKubeletOwesNothing) {
  gate.sent();
  ASSERT_TRUE(hold());
  gate.kubelet_is_new();
  EXPECT_EQ(gone, 1);
  EXPECT_FALSE(hold());
}

TEST_F(Lists, AServerThatGoesAwayTakesItsWaitersAlong) {
  gate.sent();
  ASSERT_TRUE(hold(model::Resource::neuron));
  ASSERT_TRUE(hold(model::Resource::efa));
  gate.release(model::Resource::efa);
  EXPECT_EQ(gone, 1);
  gate.checkpoint_written();
  EXPECT_EQ(gone, 2);
}

}  // namespace
}  // namespace neuron::plugin
