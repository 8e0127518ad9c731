// The texts of a load, read by the agent's own parsers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/host/proc_files.h"
#include "tools/neuron-sim/load_host.h"

namespace neuron::sim {
namespace {

using ::testing::Optional;

TEST(LoadTexts, ProcessFilesAreAsTheKernelWritesThem) {
  ProcessActivity process;
  process.pid = 12;
  process.arguments = {"/usr/bin/a-very-long-program-name", "x"};
  process.user_ticks = 5;
  process.system_ticks = 6;
  process.start_ticks = 7;
  process.resident_bytes = 8 * 4096;
  const std::string stat = process_stat(process, 100);
  EXPECT_THAT(host::parse_process_times(stat), Optional(host::ProcessTimes{5, 6, 107}));
  EXPECT_EQ(std::count(stat.begin(), stat.end(), ' '), 51);
  EXPECT_TRUE(stat.starts_with("12 (a-very-long-pro) S "));
  EXPECT_THAT(host::parse_resident(process_statm(process), 4096), Optional(8U * 4096));
}

TEST(LoadTexts, MemoryInUse) {
  const std::string before = "MemTotal:       1000000 kB\nMemFree:        500 kB\nHugepagesize:       2048 kB\n";
  const std::string after = with_memory_used(before, 300000 * 1024);
  EXPECT_EQ(after,
            "MemTotal:       1000000 kB\n"
            "MemFree:          612500 kB\n"
            "MemAvailable:     700000 kB\n"
            "SwapTotal:             0 kB\n"
            "SwapFree:              0 kB\n"
            "Hugepagesize:       2048 kB\n");
  EXPECT_EQ(with_memory_used(after, 300000 * 1024), after);
  EXPECT_EQ(host::parse_memory(with_memory_used(before, std::uint64_t{1} << 50U))->available_bytes, 0U);
  EXPECT_EQ(with_memory_used("garbage", 5), "garbage\n");
}

}  // namespace
}  // namespace neuron::sim
