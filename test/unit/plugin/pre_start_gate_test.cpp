#include "plugin/pre_start_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "test/fakes/fake_clock.h"
#include "test/unit/plugin/views.h"

namespace neuron::plugin {
namespace {

using testing::HasSubstr;

struct Gate : testing::Test {
  fakes::FakeClock clock;
  AllocationDesk desk{ResponseOptions{}, [] { return 0; }, clock};
  std::map<std::pair<int, int>, std::uint64_t> memory;  // (device, physical core) -> bytes
  std::deque<std::pair<SteadyTime, std::function<void()>>> jobs;
  std::vector<std::optional<Error>> answers;
  PreStartGate gate{desk,
                    [this](int device, int core) -> std::optional<std::uint64_t> {
                      const auto found = memory.find({device, core});
                      return found == memory.end() ? std::nullopt : std::optional(found->second);
                    },
                    [this](SteadyTime when, std::function<void()> job) { jobs.emplace_back(when, std::move(job)); },
                    clock};

  void SetUp() override { desk.set_view(view_of("trn1.32xlarge")); }
  void wait(const std::string& core) {
    gate.wait(Resource::neuroncore, {core},
              [this](std::optional<Error> error) { answers.push_back(std::move(error)); });
  }
  void run_due_jobs() {
    for (std::size_t n = jobs.size(); n > 0; --n) {
      auto [when, job] = std::move(jobs.front());
      jobs.pop_front();
      if (when <= clock.now()) {
        job();
      } else {
        jobs.emplace_back(when, std::move(job));
      }
    }
  }
};

TEST_F(Gate, FreeCoresStartAtOnce) {
  memory[{3, 1}] = 0;
  wait("7");
  run_due_jobs();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_FALSE(answers[0]);
}

TEST_F(Gate, UnknownMemoryDoesNotHoldAnybodyBack) {
  wait("7");
  run_due_jobs();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_FALSE(answers[0]);
}

TEST_F(Gate, WaitsUntilTheOldOwnerIsGone) {
  memory[{3, 1}] = 4096;
  wait("7");
  run_due_jobs();
  EXPECT_TRUE(answers.empty());
  memory[{3, 1}] = 0;
  clock.advance(PreStartGate::kRetryEvery);
  run_due_jobs();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_FALSE(answers[0]);
}

TEST_F(Gate, GivesUpNamingTheCoreEvenWhenTheWorkerHangs) {
  memory[{3, 1}] = 4096;
  wait("7");
  run_due_jobs();
  ASSERT_TRUE(gate.expire());
  clock.advance(PreStartGate::kPatience);
  EXPECT_FALSE(gate.expire());
  ASSERT_EQ(answers.size(), 1U);
  ASSERT_TRUE(answers[0]);
  EXPECT_EQ(answers[0]->code, ErrorCode::deadline_exceeded);
  EXPECT_THAT(answers[0]->message, HasSubstr("core 7 (neuron3/neuron_core1) still has 4096 bytes"));
  run_due_jobs();
  EXPECT_EQ(answers.size(), 1U) << "answered once";
}

TEST_F(Gate, ShutdownAnswersEverybody) {
  memory[{3, 1}] = 4096;
  wait("7");
  gate.cancel_all();
  wait("6");
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0]->code, ErrorCode::unavailable);
  EXPECT_EQ(answers[1]->code, ErrorCode::unavailable);
}

TEST_F(Gate, UnknownIdsAreRefused) {
  wait("99");
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0]->code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace neuron::plugin
