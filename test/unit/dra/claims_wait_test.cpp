#include <future>
#include <latch>

#include "plugin/dra/claim/claim_preparer.h"
#include "test/unit/dra/claims_fixture.h"

namespace neuron::plugin::dra {
namespace {

using testing::HasSubstr;

class ClaimsWait : public ClaimsTest {
 protected:
  [[nodiscard]] std::future<PrepareAnswer> prepare_later(const std::string& name, std::stop_token stop = {}) {
    return std::async(std::launch::async, [this, name, stop = std::move(stop)] {
      return agent_->claims.prepare({ref(name)}, stop).at(uid_of(name));
    });
  }
  // Waiting claims have three timers each: patience, the read that may hang, the next read.
  [[nodiscard]] bool wait_until_looking(std::size_t claims = 1) { return leftovers_.wait_for_timers(3 * claims); }
};

TEST_F(ClaimsWait, LeftoversOnTheCoresAreWaitedFor) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  leftovers_.set(2, 1, 4096);
  auto answer = prepare_later("a");
  ASSERT_TRUE(wait_until_looking());
  EXPECT_EQ(prepared(), 0U);
  // Another claim is not kept waiting by it.
  put_claim("b", {{"chips", "neuron-device-3"}});
  EXPECT_EQ(prepare("b").error, "");
  leftovers_.set(2, 1, 0);
  leftovers_.advance(clock_, MemoryGate::kRetryEvery);
  EXPECT_EQ(answer.get().error, "");
  EXPECT_EQ(prepared(), 2U);
}

TEST_F(ClaimsWait, LeftoversThatStayAreAnErrorThatNamesThem) {
  change_node([](model::HostScan& host) { host.devices[2].processes = {{77, 0b10, {}, {}}}; });
  put_claim("a", {{"chips", "neuron-device-2-core-1"}});
  leftovers_.set(2, 0, 4096);  // the other core: does not matter
  leftovers_.set(2, 1, 4096);
  auto answer = prepare_later("a");
  ASSERT_TRUE(wait_until_looking());
  leftovers_.advance(clock_, MemoryGate::kTimeout);
  EXPECT_EQ(answer.get().error,
            "core 5 (neuron2/neuron_core1) still has 4096 bytes of device memory in use pid 77 after 25 s; terminate "
            "the process that holds it, or restart the pod later");
  EXPECT_EQ(prepared(), 0U);
}

TEST_F(ClaimsWait, AStopEndsTheWaitAndNothingIsPrepared) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  leftovers_.set(2, 1, 4096);
  std::stop_source stop;
  auto answer = prepare_later("a", stop.get_token());
  ASSERT_TRUE(wait_until_looking());
  stop.request_stop();
  EXPECT_THAT(answer.get().error, HasSubstr("the call was cancelled"));
  EXPECT_EQ(prepared(), 0U);
  leftovers_.set(2, 1, 0);
  const auto stopped = agent_->claims.prepare({ref("a")}, stop.get_token()).at("uid-a");  // before it began
  EXPECT_EQ(stopped.reason, "interrupted");
  EXPECT_EQ(prepared(), 0U);
}

// The kubelet gave up, the pod went, and the call goes on.
TEST_F(ClaimsWait, Pain4APrepareThatOutlivesItsCallDoesNotBringBackWhatWasReleased) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  leftovers_.set(2, 1, 4096);
  for (const bool by_another_instance : {false, true}) {
    auto answer = prepare_later("a");
    ASSERT_TRUE(wait_until_looking());
    if (by_another_instance) {
      EXPECT_EQ(another_instance()->claims.unprepare({ref("a")}).at("uid-a"), "");
    } else {
      EXPECT_EQ(unprepare("a"), "");
    }
    leftovers_.set(2, 1, 0);
    leftovers_.advance(clock_, MemoryGate::kRetryEvery);
    EXPECT_THAT(answer.get().error, HasSubstr("was released while it was being prepared"));
    EXPECT_EQ(prepared(), 0U);
    EXPECT_TRUE(names_in(cdi()).empty());
    leftovers_.advance(clock_, MemoryGate::kTimeout);  // timers that are left
    leftovers_.set(2, 1, 4096);
  }
  leftovers_.set(2, 1, 0);
  EXPECT_EQ(prepare("a").error, "");  // a new call is a new pod's
}

// Two claims for the same device wait together: one gets it.
TEST_F(ClaimsWait, AClaimThatWaitedDoesNotTakeWhatAnotherTookMeanwhile) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  put_claim("b", {{"chips", "neuron-device-2"}});
  leftovers_.set(2, 1, 4096);
  auto first = prepare_later("a");
  ASSERT_TRUE(wait_until_looking());
  auto second = prepare_later("b");
  ASSERT_TRUE(wait_until_looking(2));
  leftovers_.set(2, 1, 0);
  leftovers_.advance(clock_, MemoryGate::kRetryEvery);
  const PrepareAnswer a = first.get(), b = second.get();
  EXPECT_EQ(a.error.empty() ? b.reason : a.reason, "held_by_claim");
  EXPECT_EQ(prepared(), 1U);
}

// Claims for a device that no scan shows are tried again and again, while a scan for it hangs in the driver.
TEST(SharedScanTest, AHungScanTakesOneThreadAndHoldsUpNobodyAfterItsTime) {
  std::latch let_go(1);
  std::atomic<int> begun = 0;
  std::vector<std::jthread> threads;
  const grant::NodeUnitsPtr node = node_of("trn1.2xlarge");
  SharedScan scan(
      [&] {
        if (begun++ == 0) let_go.wait();
        return node;
      },
      [&](std::function<void()> job) { threads.emplace_back(std::move(job)); }, std::chrono::milliseconds(20));
  for (int i = 0; i < 200; ++i) EXPECT_EQ(scan(), nullptr);
  EXPECT_EQ(begun, 1);
  EXPECT_EQ(threads.size(), 1U);
  let_go.count_down();
  threads.front().join();
  EXPECT_EQ(SharedScan([&] { return node; }, [](const std::function<void()>& job) { job(); })(), node);
  EXPECT_EQ(SharedScan({}, {})(), nullptr);
}

// Several claims of one call wait at the same time: together no longer than one.
TEST_F(ClaimsWait, ClaimsOfOneCallWaitTogether) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  put_claim("b", {{"chips", "neuron-device-3"}});
  put_claim("c", {{"chips", "neuron-device-4"}});
  leftovers_.set(2, 1, 4096);
  leftovers_.set(3, 1, 4096);
  auto answers = std::async(std::launch::async, [this] { return prepare_all({"a", "b", "c"}); });
  ASSERT_TRUE(leftovers_.wait_for_timers(8));
  leftovers_.advance(clock_, MemoryGate::kTimeout);
  const auto done = answers.get();
  EXPECT_EQ(done.at("uid-a").reason, "in_use");
  EXPECT_EQ(done.at("uid-b").reason, "in_use");
  EXPECT_EQ(done.at("uid-c").error, "");
}

TEST_F(ClaimsTest, WhatADevicePluginGaveIsRefusedUntilItsPodHasEnded) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  put_claim("b", {{"chips", "neuron-device-3"}});
  plugin_holders_ = PluginHolders{{"default/old/main", "aws.amazon.com/neuron", false, {{{2, {}}}, {}}}};
  EXPECT_EQ(prepare("a").reason, "held_by_plugin");
  EXPECT_EQ(prepare("b").error, "");
  plugin_holders_ = PluginHolders();
  EXPECT_EQ(prepare("a").error, "");
}

TEST_F(ClaimsTest, NothingIsGivenBeforeItIsKnownWhatOthersHold) {
  put_claim("a", {{"chips", "neuron-device-2"}});
  put_claim("b", {{"chips", "neuron-device-3"}});
  EXPECT_EQ(prepare("b").error, "");
  plugin_holders_ = fail(ErrorCode::unavailable, RefusalReason::holders_unknown, "not listed yet");
  EXPECT_EQ(prepare("b").error, "") << "it is prepared";
  const auto refused = prepare("a");
  EXPECT_EQ(refused.error, "not listed yet");
  EXPECT_EQ(refused.reason, "holders_unknown");
  plugin_holders_ = PluginHolders();
  EXPECT_EQ(prepare("a").error, "");
}

TEST(BootId, IsReadBelowTheRoot) {
  const Scratch scratch;
  EXPECT_EQ(read_boot_id(scratch.path()), "");
  write_text(scratch.path() + "/proc/sys/kernel/random/boot_id", "5a1c-1\n");
  EXPECT_EQ(read_boot_id(scratch.path()), "5a1c-1");
}

}  // namespace
}  // namespace neuron::plugin::dra
