#include "plugin/dra/claim/claim_upkeep.h"

#include <condition_variable>
#include <mutex>

#include "agent/base/workers.h"
#include "test/unit/dra/claims_fixture.h"

namespace neuron::plugin::dra {
namespace {

// Counts the questions: the loop asks at least twice a turn, the last time when its work is done.
class CountingClock final : public Clock {
 public:
  [[nodiscard]] SteadyTime now() const override {
    ++asked_;
    note_event();
    return std::chrono::steady_clock::now();
  }
  [[nodiscard]] int asked() const { return asked_; }

  void note_event() const {
    const std::lock_guard lock(mutex_);
    ++events_;
    changed_.notify_all();
  }
  // Evaluates `condition` now and after each event, until it holds.
  [[nodiscard]] bool wait_until(const std::function<bool()>& condition, SteadyTime deadline) const {
    for (std::unique_lock lock(mutex_);;) {
      const int seen = events_;
      lock.unlock();
      if (condition()) return true;
      lock.lock();
      if (!changed_.wait_until(lock, deadline, [&] { return events_ != seen; })) return false;
    }
  }

 private:
  mutable std::atomic<int> asked_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int events_ = 0;
};

// The upkeep on a thread of its own; its repairs run, or hang until the test lets them go on.
class ClaimUpkeepTest : public ClaimsTest {
 protected:
  static constexpr std::chrono::seconds kDeadline{20};

  void SetUp() override {
    ClaimsTest::SetUp();
    put_claim("a", {{"chips", "neuron-device-2"}});
    ASSERT_EQ(prepare("a").error, "");
    text_ = read_text(cdi_file("uid-a"));
    upkeep_.emplace(
        agent_->store, agent_->sweep, ClaimUpkeep::Settings{cdi(), directory()},
        ClaimUpkeep::Ports{
            [this](std::function<void()> job) { take(std::move(job)); },
            [this](std::function<void()> job) { workers_.run(std::move(job)); }, [this] { ++changes_; }, loop_clock_,
            [this](const std::string& directory) { return is_unwatched_ ? std::nullopt : CdiWatch::open(directory); }});
  }
  void TearDown() override {
    thread_ = {};
    let_go();
    ASSERT_TRUE(workers_.stop(kDeadline));
  }
  void start() {
    thread_ = std::jthread([this](const std::stop_token& stop) { upkeep_->run(stop); });
  }
  void hang() {
    const std::lock_guard lock(mutex_);
    hangs_ = true;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    hangs_ = false;
    for (auto& job : hung_) workers_.run(std::move(job));
    hung_.clear();
  }
  [[nodiscard]] std::size_t hanging() {
    const std::lock_guard lock(mutex_);
    return hung_.size();
  }
  [[nodiscard]] bool wait_until(const std::function<bool()>& condition) {
    return loop_clock_.wait_until(condition, std::chrono::steady_clock::now() + kDeadline);
  }
  // Until the loop has turned at least three times, each for a change of the node.
  [[nodiscard]] bool wait_turned() {
    constexpr int kMostPerTurn = 4;
    const int before = loop_clock_.asked();
    return wait_until([&] {
      upkeep_->node_changed();
      return loop_clock_.asked() >= before + 3 * kMostPerTurn;
    });
  }
  [[nodiscard]] bool wait_written() {
    return wait_until([this] { return std::filesystem::exists(cdi_file("uid-a")); });
  }

  std::string text_;
  std::atomic<int> changes_{0};
  std::atomic<bool> is_unwatched_{false};
  const CountingClock loop_clock_;
  Workers workers_;
  std::optional<ClaimUpkeep> upkeep_;
  std::jthread thread_;

 private:
  void take(std::function<void()> job) {
    const std::lock_guard lock(mutex_);
    if (hangs_) {
      hung_.push_back(std::move(job));
      loop_clock_.note_event();
    } else {
      workers_.run(std::move(job));
    }
  }
  std::mutex mutex_;
  bool hangs_ = false;
  std::vector<std::function<void()>> hung_;
};

TEST_F(ClaimUpkeepTest, FilesThatGoAreWrittenAgain) {
  std::filesystem::remove(cdi_file("uid-a"));
  start();
  EXPECT_TRUE(upkeep_->await_first());
  EXPECT_EQ(read_text(cdi_file("uid-a")), text_);
  EXPECT_GE(changes_, 1);
  std::filesystem::remove(cdi_file("uid-a"));
  EXPECT_TRUE(wait_written());
  std::filesystem::remove_all(cdi());
  EXPECT_TRUE(wait_written());
  std::filesystem::remove(cdi_file("uid-a"));
  EXPECT_TRUE(wait_written()) << "the new directory is watched";
}

// As when all instances of inotify are in use.
TEST_F(ClaimUpkeepTest, WithoutAWatchFilesAreLookedForEveryTwoSeconds) {
  is_unwatched_ = true;
  start();
  EXPECT_TRUE(upkeep_->await_first());
  for (int i = 0; i < 2; ++i) {
    std::filesystem::remove(cdi_file("uid-a"));
    EXPECT_TRUE(wait_written());
  }
}

TEST_F(ClaimUpkeepTest, ADirectoryThatHangsHoldsUpNeitherTheStartNorTheEnd) {
  hang();
  start();
  EXPECT_FALSE(upkeep_->await_first());
  EXPECT_TRUE(wait_until([this] { return prepare("a").reason == "claim_files"; }));
  EXPECT_TRUE(wait_turned());
  EXPECT_EQ(hanging(), 1U) << "not joined by another";
  const auto begin = std::chrono::steady_clock::now();
  thread_ = {};
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(ClaimUpkeepTest, WhatHungIsDoneOnceItComesBack) {
  std::filesystem::remove(cdi_file("uid-a"));
  hang();
  start();
  ASSERT_TRUE(wait_until([this] { return hanging() == 1; }));
  EXPECT_FALSE(std::filesystem::exists(cdi_file("uid-a")));
  let_go();
  EXPECT_TRUE(wait_written());
  std::filesystem::remove(cdi_file("uid-a"));
  EXPECT_TRUE(wait_written());
  EXPECT_EQ(prepare("a").error, "");
}

}  // namespace
}  // namespace neuron::plugin::dra
