#include "tools/neuron-sim/load_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace neuron::sim {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

LoadShape shape_of(int devices, int cores, int efas) {
  LoadShape shape;
  for (int i = 0; i < devices; ++i) {
    shape.devices.push_back({i, {}});
    for (int core = 0; core < cores; ++core) shape.devices.back().cores.push_back(core);
  }
  for (int i = 0; i < efas; ++i) shape.efas.push_back({"efa_" + std::to_string(i), 1e9});
  shape.core_memory_bytes = std::uint64_t{1} << 30U;
  shape.core_flops = 1e12;
  shape.cpus = 8;
  shape.host_memory_bytes = std::uint64_t{1} << 36U;
  return shape;
}

// What a day comes to, as one text.
std::string tale(std::uint64_t seed, int steps) {
  Workload workload(shape_of(16, 8, 16), seed);
  std::string text;
  for (int i = 0; i < steps; ++i) {
    const Activity activity = workload.step(500ms);
    for (const auto& process : activity.processes) text += std::to_string(process.pid) + ",";
    for (const auto& core : activity.cores) text += std::to_string(core.busy_us) + ";";
  }
  return text;
}

TEST(Workload, SameSeedSameDay) {
  EXPECT_EQ(tale(1, 40), tale(1, 40));
  EXPECT_NE(tale(1, 40), tale(2, 40));
}

TEST(Workload, KeepsWhatAHostCanDo) {
  for (const auto& shape :
       {shape_of(16, 8, 16), shape_of(16, 2, 8), shape_of(1, 8, 1), shape_of(1, 1, 0), shape_of(64, 8, 0)}) {
    Workload workload(shape, 5);
    std::uint64_t ticks = 0;
    for (int i = 0; i < 1000; ++i) {
      const Activity activity = workload.step(1s);
      ASSERT_THAT(activity.devices, SizeIs(shape.devices.size()));
      for (const auto& core : activity.cores) {
        EXPECT_LE(core.busy_us, 1'000'000U);
        EXPECT_EQ(core.pid == 0, core.device_memory[1] == 0);
        EXPECT_LE(std::accumulate(core.device_memory.begin(), core.device_memory.end(), std::uint64_t{0}),
                  shape.core_memory_bytes);
        EXPECT_TRUE(core.pid != 0 || core.busy_us == 0);
      }
      for (const auto& efa : activity.efas) {
        const auto sent = efa.growth.find("ports/1/hw_counters/tx_bytes");
        EXPECT_TRUE(sent == efa.growth.end() || static_cast<double>(sent->second) <= 1e9);
      }
      EXPECT_LE(activity.host_bytes, shape.host_memory_bytes);
      ticks += activity.user_ticks + activity.system_ticks + activity.idle_ticks;
    }
    EXPECT_NEAR(static_cast<double>(ticks), 1000.0 * 8 * kTicksPerSecond, 2);
  }
}

TEST(Workload, ProcessesComeAndGoAndNeverShareACore) {
  Workload workload(shape_of(16, 8, 16), 3);
  std::set<int> seen;
  std::size_t most = 0;
  bool gone = false;
  for (int i = 0; i < 600; ++i) {
    const Activity activity = workload.step(1s);
    std::set<int> now;
    for (const auto& process : activity.processes) {
      EXPECT_THAT(process.devices, Not(IsEmpty()));
      now.insert(process.pid);
    }
    for (const auto& device : activity.devices) {
      unsigned used = 0;
      for (const auto& share : device.processes) {
        EXPECT_EQ(used & share.core_mask, 0U);
        EXPECT_TRUE(now.contains(share.pid));
        used |= share.core_mask;
      }
    }
    for (const int pid : seen) gone = gone || !now.contains(pid);
    seen.insert(now.begin(), now.end());
    most = std::max(most, now.size());
  }
  EXPECT_GT(seen.size(), 10U);
  EXPECT_GE(most, 4U);
  EXPECT_TRUE(gone);
}

TEST(Workload, BusyTimeIsTheSameHoweverItIsCutIntoSteps) {
  const auto busy_after = [](std::chrono::microseconds step, int steps) {
    Workload workload(shape_of(16, 8, 16), 1);
    double busy = 0;
    for (int i = 0; i < steps; ++i) {
      for (const auto& core : workload.step(step).cores) busy += static_cast<double>(core.busy_us);
    }
    return busy;
  };
  const double coarse = busy_after(1s, 30);
  EXPECT_NEAR(busy_after(100ms, 300) / coarse, 1, 0.1);
  EXPECT_GT(coarse, 0);
}

TEST(Workload, PowerIsRolledUpOncePerMinute) {
  Workload workload(shape_of(2, 2, 0), 1);
  int rolls = 0;
  for (int i = 0; i < 181; ++i) {
    const Activity activity = workload.step(1s);
    if (!activity.devices[0].minute) continue;
    ++rolls;
    const auto& minute = *activity.devices[0].minute;
    EXPECT_LE(minute.min_percent, minute.average_percent);
    EXPECT_LE(minute.average_percent, minute.max_percent);
    EXPECT_LE(minute.max_percent, 100);
  }
  EXPECT_EQ(rolls, 4);  // at the beginning, when the minute ends in which the load began, then after each minute
}

TEST(Workload, CorrectedErrorsAreFew) {
  Workload workload(shape_of(4, 2, 0), 1);
  std::uint64_t errors = 0;
  for (int i = 0; i < 600; ++i) {
    for (const auto& device : workload.step(1s).devices) errors += device.corrected_errors;
  }
  EXPECT_GE(errors, 600U / 60 - 1);
  EXPECT_LE(errors, 600U / 15 + 1);
}

}  // namespace
}  // namespace neuron::sim
