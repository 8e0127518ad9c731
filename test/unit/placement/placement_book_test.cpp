#include "plugin/placement/placement_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "test/fakes/fake_clock.h"
#include "test/unit/placement/pods.h"

namespace neuron::plugin {
namespace {

using model::Resource;
using testing::ElementsAre;
using testing::IsEmpty;

struct Book : testing::Test {
  fakes::FakeClock clock;
  std::vector<std::pair<SteadyTime, PlacementBook::Job>> timers;
  std::vector<PodName> finished;
  std::shared_ptr<PlacementBook> book = std::make_shared<PlacementBook>(
      PlacementBook::Ports{[this](SteadyTime at, PlacementBook::Job job) { timers.emplace_back(at, std::move(job)); },
                           [this](PodName pod) { finished.push_back(std::move(pod)); }},
      clock);
  PlacementBook::Holdings held;

  void SetUp() override { list({}); }
  void list(const std::vector<PlacedPod>& pods) {
    book->reset();
    for (const PlacedPod& pod : pods) book->upsert(pod);
    book->synced();
  }
  // "default/a: 4,5"; "" = nobody's.
  [[nodiscard]] std::string choose(int size = 2, Resource resource = Resource::neuron) {
    const auto choice = book->choose(resource, size, held);
    if (!choice) return "";
    std::string text = choice->pod + ":";
    for (const int id : choice->ids.ids) text += " " + std::to_string(id);
    return text;
  }
  void give(const std::vector<std::string>& ids, Resource resource = Resource::neuron) {
    book->given(resource, ids, held);
  }
  [[nodiscard]] std::vector<std::string> finished_names() const {
    std::vector<std::string> names;
    for (const PodName& one : finished) names.push_back(one.name);
    return names;
  }
};

TEST_F(Book, ACallIsForTheOnlyPodThatAsksForAsMuch) {
  book->upsert(waiting("a", "4,5"));
  book->upsert(waiting("b", "8,9,10,11", "2000", "4"));
  EXPECT_EQ(choose(4), "default/b: 8 9 10 11");
  give({"8", "9", "10", "11"});
  EXPECT_EQ(choose(), "default/a: 4 5");
  give({"5", "4"});
  EXPECT_THAT(finished_names(), ElementsAre("b", "a"));
  EXPECT_EQ(choose(), "");
}

TEST_F(Book, OfTwoTheOlderIsFirst) {
  book->upsert(waiting("a", "4,5", "1000"));
  book->upsert(waiting("b", "6,7", "2000"));
  EXPECT_EQ(choose(), "default/a: 4 5");
  give({"4", "5"});
  EXPECT_EQ(choose(), "default/b: 6 7");
}

TEST_F(Book, OfTwoInOneListTheTimeDecides) {
  list({waiting("a", "4,5", "2000"), waiting("b", "6,7", "1000")});
  EXPECT_EQ(choose(), "default/b: 6 7");
}

TEST_F(Book, WithoutAnOrderTheCallIsForNobody) {
  list({waiting("a", "4,5", "1000"), waiting("b", "6,7", "1000")});
  EXPECT_EQ(choose(), "");
  list({waiting("c", "4,5", "2000")});
  book->upsert(waiting("d", "6,7", "1000"));  // bound later, placed earlier
  EXPECT_EQ(choose(), "");
  list({waiting("e", "4,5", "no time"), waiting("f", "")});
  EXPECT_EQ(choose(), "");
}

TEST_F(Book, APodThatNobodyPlacedIsServedInItsTurn) {
  book->upsert(waiting("plain", ""));
  book->upsert(waiting("placed", "6,7"));
  EXPECT_EQ(choose(), "");
  give({"0", "1"});
  EXPECT_EQ(choose(), "default/placed: 6 7");
  EXPECT_THAT(finished, IsEmpty());
}

TEST_F(Book, PodsThatTheKubeletHasAdmittedDoNotCount) {
  PlacedPod pod = waiting("a", "4,5");
  book->upsert(pod);
  pod.waits = false;
  book->upsert(pod);
  EXPECT_EQ(choose(), "");
  clock.advance(PlacementBook::kUnexplained);
  book->upsert(waiting("b", "4,5"));
  book->remove("uid-b");
  EXPECT_EQ(choose(), "");
  clock.advance(PlacementBook::kUnexplained);
  book->upsert(waiting("c", "4,5"));
  holdings::Holding holding;
  holding.resource = Resource::neuron;
  holding.holder = "default/c/main";
  held.push_back(holding);
  EXPECT_EQ(choose(), "");
}

TEST_F(Book, ContainersAreServedInTheirOrder) {
  book->upsert(read(pod_json(
      "a", {container("one", {{kNeuron, "1"}, {kCore, "2"}}), container("two", {{kNeuron, "1"}, {kCore, "2"}})},
      "7,3")));
  EXPECT_EQ(choose(2, Resource::neuroncore), "default/a: 7");
  give({"14", "15"}, Resource::neuroncore);
  EXPECT_EQ(choose(1), "default/a: 7");
  give({"7"});
  EXPECT_THAT(finished, IsEmpty());
  EXPECT_EQ(choose(1), "default/a: 3");
  give({"3"});
  EXPECT_THAT(finished_names(), ElementsAre("a"));
}

TEST_F(Book, OtherIdsThanChosenAreNotAcknowledged) {
  book->upsert(waiting("a", "4,5"));
  EXPECT_EQ(choose(), "default/a: 4 5");
  give({"0", "1"});
  EXPECT_EQ(choose(), "");
  EXPECT_THAT(finished, IsEmpty());
}

TEST_F(Book, TheKubeletNeedNotAskForAPreference) {
  book->upsert(waiting("a", "4,5"));
  give({"6", "7"});
  EXPECT_THAT(finished, IsEmpty());
  give({"4", "5"});
  EXPECT_THAT(finished_names(), ElementsAre("a"));
}

TEST_F(Book, APodSeenAfterACallThatNoneExplainedMayHaveBeenTheCaller) {
  EXPECT_EQ(choose(), "");
  book->upsert(waiting("a", "4,5"));
  EXPECT_EQ(choose(), "");
  book->remove("uid-a");
  clock.advance(PlacementBook::kUnexplained);
  book->upsert(waiting("b", "4,5"));
  EXPECT_EQ(choose(), "default/b: 4 5");
}

TEST_F(Book, WhileTheWatchFailsTheCallIsForNobody) {
  book->upsert(waiting("a", "4,5"));
  book->trouble();
  EXPECT_EQ(choose(), "");
  list({waiting("a", "4,5")});
  EXPECT_EQ(choose(), "default/a: 4 5");
}

TEST_F(Book, AListForgetsWhatIsNotInIt) {
  book->upsert(waiting("a", "4,5", "1000"));
  book->upsert(waiting("b", "6,7", "2000"));
  list({waiting("b", "6,7", "2000")});
  EXPECT_EQ(choose(), "default/b: 6 7");
}

TEST_F(Book, ACallWaitsForItsPodAWhile) {
  int runs = 0;
  const auto count = [&runs] { ++runs; };
  book->when_known(Resource::neuron, 2, count);
  EXPECT_EQ(runs, 0);
  ASSERT_EQ(timers.size(), 1U);
  book->upsert(waiting("other", "4", "1000", "1"));
  EXPECT_EQ(runs, 0);
  book->upsert(waiting("a", "4,5"));
  EXPECT_EQ(runs, 1);
  clock.advance(PlacementBook::kMostWait);
  timers[0].second();
  EXPECT_EQ(runs, 1);
  book->when_known(Resource::neuron, 2, count);  // it is known
  EXPECT_EQ(runs, 2);
  book->when_known(Resource::neuron, 3, count);
  timers.back().second();
  EXPECT_EQ(runs, 2);
  clock.advance(PlacementBook::kMostWait);
  timers.back().second();
  EXPECT_EQ(runs, 3);
  book->when_known(Resource::neuron, 3, count);
  book->trouble();
  EXPECT_EQ(runs, 4);
  book->when_known(Resource::neuron, 3, count);
  EXPECT_EQ(runs, 5);
}

TEST_F(Book, CallsOfAServerThatEndsWaitNoLonger) {
  int runs = 0;
  book->when_known(Resource::neuron, 2, [&runs] { ++runs; });
  book->release(Resource::neuroncore);
  EXPECT_EQ(runs, 0);
  book->release(Resource::neuron);
  EXPECT_EQ(runs, 1);
  clock.advance(PlacementBook::kMostWait);
  book.reset();
  timers[0].second();  // it does no harm later
}

}  // namespace
}  // namespace neuron::plugin
