#include "plugin/device/admission_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "test/fakes/fake_clock.h"

namespace neuron::plugin {
namespace {

using model::Resource;
using std::chrono::milliseconds;

struct AdmissionGateTest : testing::Test {
  fakes::FakeClock clock;
  std::atomic<holdings::CheckpointVersion> version{1};
  std::atomic<int> changes{0};
  AdmissionGate gate{clock, [this] { return version.load(); }, [this] { ++changes; }};

  void written() {
    ++version;
    gate.checkpoint_written();
  }
};

TEST_F(AdmissionGateTest, AnAnswerThatMayGoIsMadeOnTheCallersThread) {
  bool went = false;
  gate.answer(Resource::neuron, [&] {
    went = true;
    gate.answered(Admissions::Outcome::given);
  });
  EXPECT_TRUE(went);
}

TEST_F(AdmissionGateTest, AnAnswerThatWaitsIsMadeByWhoeverEndsTheWaitAndTellsTheLoop) {
  gate.list_published();
  int went = 0;
  gate.answer(Resource::neuron, [&] {
    ++went;
    gate.answered(Admissions::Outcome::given);
  });
  EXPECT_EQ(went, 0);
  EXPECT_EQ(changes, 1) << "the loop keeps the time";
  written();
  EXPECT_EQ(went, 1);
}

TEST_F(AdmissionGateTest, AnAnswerThatNeedsAFreshCheckpointMakesTheLoopSendAListOnce) {
  bool went = false;
  gate.answer(Resource::neuron, [&] {
    gate.wait_for_checkpoint(Resource::neuron, clock.now(), [&] {
      went = true;
      gate.answered(Admissions::Outcome::given);
    });
  });
  EXPECT_TRUE(gate.due(gate.progress()).same_list);
  EXPECT_FALSE(gate.due(gate.progress()).same_list);
  gate.list_published();
  gate.lists_sent();
  EXPECT_FALSE(went);
  written();
  EXPECT_TRUE(went);
}

// Main asks what is due, and sends the list a little later: an answer that was given in between would be followed by
// the write of that list.
TEST_F(AdmissionGateTest, NoAnswerBeginsBetweenTheDecisionToSendAListForAnotherAndItsWrite) {
  gate.answer(Resource::neuron, [&] { gate.wait_for_checkpoint(Resource::neuron, clock.now(), [] {}); });
  ASSERT_TRUE(gate.due(gate.progress()).same_list);
  bool began = false;
  gate.answer(Resource::efa, [&] { began = true; });
  EXPECT_FALSE(began) << "before the list is sent";
  gate.list_published();
  gate.lists_sent();
  EXPECT_FALSE(began) << "before it is written";
  written();
  EXPECT_TRUE(began);
}

TEST_F(AdmissionGateTest, NoListIsSentForAnAnswerThatWaitsNoLonger) {
  gate.answer(Resource::neuron, [&] {
    gate.wait_for_checkpoint(Resource::neuron, clock.now(), [&] { gate.answered(Admissions::Outcome::refused); });
  });
  clock.advance(Admissions::kMaxWriteWait);  // the loop was starved
  EXPECT_FALSE(gate.due(gate.progress()).same_list);
}

// The kubelet's write of a container that lies before the list must not count as the list's.
TEST_F(AdmissionGateTest, AWriteThatWasNotToldYetKeepsTheAdmissionOpen) {
  gate.answer(Resource::neuron, [&] { gate.answered(Admissions::Outcome::given); });
  const auto before = gate.progress();
  ++version;  // inotify has not told yet
  clock.advance(milliseconds{900});
  EXPECT_FALSE(gate.due(before).lists);
  EXPECT_TRUE(gate.due(gate.progress()).lists);
}

TEST_F(AdmissionGateTest, AStreamThatMayNotShowItsListYetIsOpenedLater) {
  gate.answer(Resource::neuron, [&] { gate.answered(Admissions::Outcome::given); });
  bool open = false;
  gate.open_stream(Resource::efa, [&] {
    open = true;
    gate.list_published();
  });
  EXPECT_FALSE(open);
  written();
  EXPECT_FALSE(gate.due(gate.progress()).lists);
  EXPECT_TRUE(open);
}

// A kubelet that admits containers with two answers each, the loop, and streams that come and go, each on a thread: no
// list is offered between the first answer of a container and its checkpoint.
struct Threads : AdmissionGateTest {
  std::atomic<bool> admitting{false};
  std::atomic<bool> done{false};
  std::atomic<bool> streams_ended{false};
  std::atomic<int> lists{0};
  std::atomic<int> mixed{0};
  std::atomic<int> unwritten{0};  // lists that the kubelet has yet to write
  std::atomic<int> untold{0};     // writes that inotify has yet to tell
  std::atomic<int> turns{0};      // of the loop

  void offer() {
    if (admitting) ++mixed;
    gate.list_published();
    ++lists;
    ++unwritten;
  }
  void write() {
    ++untold;  // before: a write that is seen can be told
    ++version;
  }
  void turn() {
    const auto before = gate.progress();
    for (; untold > 0; --untold) gate.checkpoint_written();
    gate.want_lists();
    if (gate.due(before).lists) {
      offer();
      gate.lists_sent();
    }
    ++turns;
  }
  void write_lists() {
    for (; unwritten > 0; --unwritten) write();
  }
  void answer_one() {
    std::promise<void> answered;
    gate.answer(Resource::neuron, [&] {
      admitting = true;
      gate.answered(Admissions::Outcome::given);
      answered.set_value();
    });
    auto waiting = answered.get_future();
    while (waiting.wait_for(milliseconds{0}) != std::future_status::ready) write_lists();
  }
  void open_one() {
    std::promise<void> opened;
    gate.open_stream(Resource::efa, [&] {
      offer();
      opened.set_value();
    });
    opened.get_future().wait();
  }
};

TEST_F(Threads, NeverMixListsIntoAnAdmission) {
  std::thread loop([this] {
    while (!streams_ended) turn();
  });
  std::thread streams([this] {
    while (!done) open_one();
    streams_ended = true;
  });
  for (int container = 0; container < 500; ++container) {
    answer_one();
    answer_one();
    admitting = false;  // before the write: what comes after it may be a list
    write();
    clock.advance(milliseconds{250});
    // However slow the loop's thread is, no wait reaches its bound in this test.
    for (const int seen = turns; turns < seen + 2;) write_lists();
  }
  done = true;
  while (!streams_ended) write_lists();
  streams.join();
  loop.join();
  EXPECT_EQ(mixed, 0);
  EXPECT_GT(lists, 100);
}

}  // namespace
}  // namespace neuron::plugin
