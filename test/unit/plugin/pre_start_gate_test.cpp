#include "plugin/device/pre_start_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Gate : testing::Test {
  fakes::FakeClock clock;
  Allocations allocations{grant::GrantOptions{}, [] { return 0; }, clock};
  std::map<std::pair<int, int>, std::uint64_t> memory;  // (device, physical core) -> bytes
  std::vector<std::pair<int, int>> asked;
  std::deque<PreStartGate::Job> reads;  // those not run hang
  std::deque<std::pair<SteadyTime, PreStartGate::Job>> timers;
  std::vector<std::optional<Error>> answers;
  PreStartGate gate{allocations,
                    [this](int device, int core) -> std::optional<std::uint64_t> {
                      asked.emplace_back(device, core);
                      const auto found = memory.find({device, core});
                      return found == memory.end() ? std::nullopt : std::optional(found->second);
                    },
                    [this](PreStartGate::Job job) { reads.push_back(std::move(job)); },
                    [this](SteadyTime when, PreStartGate::Job job) { timers.emplace_back(when, std::move(job)); },
                    clock};

  void SetUp() override { allocations.set_node(node_of("trn1.32xlarge")); }
  void wait(const std::string& id, model::Resource resource = model::Resource::neuroncore) {
    gate.wait(resource, {id}, [this](std::optional<Error> error) { answers.push_back(std::move(error)); });
  }
  void run_reads() {
    while (!reads.empty()) {
      const auto job = std::move(reads.front());
      reads.pop_front();
      job();
    }
  }
  void advance(milliseconds time) {
    clock.advance(time);
    for (std::size_t n = timers.size(); n > 0; --n) {
      auto [when, job] = std::move(timers.front());
      timers.pop_front();
      if (when <= clock.now()) {
        job();
      } else {
        timers.emplace_back(when, std::move(job));
      }
    }
  }
  void expect_started() {
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_FALSE(answers[0]) << answers[0]->message;
  }
};

TEST_F(Gate, FreeCoresStartAtOnce) {
  memory[{3, 1}] = 0;
  wait("7");
  run_reads();
  expect_started();
}

TEST_F(Gate, UnknownMemoryDoesNotHoldAnybodyBack) {
  wait("7");
  run_reads();
  expect_started();
}

TEST_F(Gate, WaitsUntilTheOldOwnerIsGone) {
  memory[{3, 1}] = 4096;
  wait("7");
  run_reads();
  EXPECT_TRUE(answers.empty());
  memory[{3, 1}] = 0;
  advance(PreStartGate::kRetryEvery);
  run_reads();
  expect_started();
}

TEST_F(Gate, GivesUpNamingTheCore) {
  memory[{3, 1}] = 4096;
  wait("7");
  for (milliseconds passed{0}; passed < PreStartGate::kTimeout; passed += PreStartGate::kRetryEvery) {
    run_reads();
    EXPECT_TRUE(answers.empty());
    advance(PreStartGate::kRetryEvery);
  }
  ASSERT_EQ(answers.size(), 1U);
  ASSERT_TRUE(answers[0]);
  EXPECT_EQ(answers[0]->code, ErrorCode::deadline_exceeded);
  EXPECT_THAT(answers[0]->message, HasSubstr("core 7 (neuron3/neuron_core1) still has 4096 bytes"));
  run_reads();
  EXPECT_EQ(answers.size(), 1U) << "answered once";
}

TEST_F(Gate, ADeviceThatHangsLetsTheContainerStartAndCostsTheNextOneNothing) {
  wait("7");
  advance(PreStartGate::kDeviceTimeout - milliseconds(1));
  EXPECT_TRUE(answers.empty());
  advance(milliseconds(1));
  expect_started();
  answers.clear();
  wait("6");
  expect_started();
  EXPECT_EQ(reads.size(), 1U) << "no second read of what hangs";

  answers.clear();
  memory[{4, 0}] = 0;
  const auto hung = std::move(reads.front());
  reads.clear();
  wait("8");
  run_reads();
  expect_started();
  EXPECT_THAT(asked, ElementsAre(std::pair(4, 0)));

  hung();  // is back: the device is asked again
  answers.clear();
  memory[{3, 0}] = 4096;
  wait("6");
  run_reads();
  EXPECT_TRUE(answers.empty());
}

TEST_F(Gate, AHangInTheMiddleOfAWaitIsNoRefusal) {
  memory[{3, 1}] = 4096;
  wait("7");
  run_reads();
  advance(PreStartGate::kRetryEvery);  // the second look hangs
  advance(PreStartGate::kDeviceTimeout);
  expect_started();
}

TEST_F(Gate, WhereEverythingHangsAContainerOfAllDevicesStartsInTime) {
  std::vector<std::string> all;
  for (int device = 0; device < 16; ++device) all.push_back(std::to_string(device));
  gate.wait(model::Resource::neuron, all, [this](std::optional<Error> error) { answers.push_back(std::move(error)); });
  milliseconds passed{0};
  for (; answers.empty() && passed < PreStartGate::kTimeout; passed += milliseconds(100)) advance(milliseconds(100));
  expect_started();
  EXPECT_LT(passed, milliseconds(12000));
}

TEST_F(Gate, ShutdownAnswersEverybody) {
  memory[{3, 1}] = 4096;
  wait("7");
  gate.cancel_all();
  wait("6");
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0]->code, ErrorCode::unavailable);
  EXPECT_EQ(answers[1]->code, ErrorCode::unavailable);
  run_reads();
  advance(PreStartGate::kTimeout);
  EXPECT_EQ(answers.size(), 2U);
}

TEST_F(Gate, UnknownIdsAreRefused) {
  wait("99");
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0]->code, ErrorCode::invalid_argument);
}

// Device 0 of a trn2: logical core 0 is the physical cores 4 and 5, or 0 and 1 where the die is flipped; then those of
// logical core 3 are 4 and 5.
struct AssumedOrder : Gate {
  void SetUp() override {
    allocations.set_node(node_of("trn2.48xlarge"));
    for (int core = 0; core < 8; ++core) memory[{0, core}] = 0;
  }
  void hold(const std::string& core) { ASSERT_TRUE(allocations.allocate(model::Resource::neuroncore, {core})); }
};

TEST_F(AssumedOrder, TheAssumedCoresAreLookedAt) {
  for (int core = 4; core < 8; ++core) memory[{0, core}] = 4096;  // of the containers on 0 and 1
  hold("0");
  hold("1");
  wait("2");
  run_reads();
  expect_started();
  EXPECT_THAT(asked, ElementsAre(std::pair(0, 2), std::pair(0, 3)));
}

TEST_F(AssumedOrder, LeftoversAreWaitedForWhileNeighboursRun) {
  memory[{0, 5}] = 4096;
  hold("1");
  hold("2");
  wait("0");
  run_reads();
  EXPECT_THAT(answers, IsEmpty());
  memory[{0, 5}] = 0;
  advance(PreStartGate::kRetryEvery);
  run_reads();
  expect_started();
}

TEST_F(AssumedOrder, MemoryThatMayBeANeighboursDoesNotHoldBack) {
  memory[{0, 5}] = 4096;
  hold("3");
  wait("0");
  run_reads();
  expect_started();
}

TEST_F(AssumedOrder, TheContainersOwnCoresAreNoNeighbours) {
  memory[{0, 5}] = 4096;
  ASSERT_TRUE(allocations.allocate(model::Resource::neuron, {"0"}));
  wait("0", model::Resource::neuron);
  run_reads();
  EXPECT_THAT(answers, IsEmpty());
}

TEST_F(AssumedOrder, TheDriversOrderIsNoGuess) {
  auto snapshot = snapshot_of("trn2.48xlarge");
  snapshot->host.devices[0].logical_to_physical = {0, 1, 2, 3, 4, 5, 6, 7};
  allocations.set_node(std::make_shared<const grant::NodeUnits>(std::move(snapshot)));
  memory[{0, 0}] = 4096;
  hold("3");
  wait("0");
  run_reads();
  EXPECT_THAT(answers, IsEmpty());
  EXPECT_THAT(asked, ElementsAre(std::pair(0, 0)));
}

}  // namespace
}  // namespace neuron::plugin
