#include "agent/host/attributes.h"
#include "agent/host/proc_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>

namespace neuron::host {
namespace {

using ::testing::Optional;
using namespace std::string_literals;

TEST(UsageTexts, Power) {
  EXPECT_THAT(parse_power("POWER_STATUS_VALID,1789180860,0.50,93.25,41.00"),
              Optional(model::PowerUsage{0.5, 93.25, 41}));
  for (const char* text :
       {"", "POWER_STATUS_NO_DATA,0,0.00,0.00,0.00", "POWER_STATUS_VALID,0,0.00,0.00,0.00",
        "POWER_STATUS_INVALID,1,0.00,0.00,0.00", "POWER_STATUS_VALID", "POWER_STATUS_VALID,1,2,3",
        "POWER_STATUS_VALID,1,2,3,4,5", "POWER_STATUS_VALID,x,1,2,3", "POWER_STATUS_VALID,1,-1,2,3",
        "POWER_STATUS_VALID,1,nan,2,3", "POWER_STATUS_VALID,1,inf,2,3", "POWER_STATUS_VALID,1,1e2,2,3",
        "POWER_STATUS_VALID,1,1001,2,3", "POWER_STATUS_VALID,1,0,50,,3"}) {
    EXPECT_FALSE(parse_power(text)) << text;
  }
}

TEST(UsageTexts, PowerInALanguageWithDecimalCommas) {
  const char* old = std::setlocale(LC_ALL, nullptr);
  const std::string before = old == nullptr ? "C" : old;
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is not installed, nothing is proved
  EXPECT_THAT(parse_power("POWER_STATUS_VALID,1,0.50,1.25,0.75"), Optional(model::PowerUsage{0.5, 1.25, 0.75}));
  std::setlocale(LC_ALL, before.c_str());
}

TEST(UsageTexts, CpuTimes) {
  const auto times = parse_cpu_times(
      "cpu  10 1 20 300 4 5 6 7 8 9\ncpu0 5 0 10 150 2 2 3 3 4 4\ncpu1 5 1 10 150 2 3 3 4 4 5\nintr 1 2\ncpu9 1\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->ticks, (model::CpuTicks{11, 31, 304, 7}));
  EXPECT_EQ(times->cpu_count, 2);
  EXPECT_EQ(parse_cpu_times("cpu 1 2 3 4\n")->ticks, (model::CpuTicks{3, 3, 4, 0}));
}

TEST(UsageTexts, CpuTimesThatAreNone) {
  for (const char* text : {"", "cpu\n", "cpu 1 2 3\n", "cpu 1 2 3 -4\n", "cpu 1 2 3 4 x\n", "cpu0 1 2 3 4\n",
                           "cpu 1 2 3 4\ncpu 1 2 3 4\n", "cpu 18446744073709551615 1 0 0\n", "nonsense"}) {
    EXPECT_FALSE(parse_cpu_times(text)) << text;
  }
}

TEST(UsageTexts, Memory) {
  const auto memory = parse_memory(
      "MemTotal:       2000 kB\nMemFree: 1 kB\nMemAvailable:    500 kB\nSwapTotal: 8 kB\nSwapFree: 0 kB\n");
  ASSERT_TRUE(memory);
  EXPECT_EQ(*memory, (model::HostMemoryUsage{2048000, 512000, 8192, 0}));
  // An old kernel, or a host made up without it: what is free is not what is available.
  EXPECT_FALSE(parse_memory("MemTotal: 2000 kB\nMemFree: 1000 kB\n"));
  EXPECT_FALSE(parse_memory("MemTotal: 2000 kB\nMemAvailable: 3000 kB\n"));
  EXPECT_FALSE(parse_memory("MemTotal: 2000\nMemAvailable: 300\n"));
  EXPECT_FALSE(parse_memory("MemTotal: 18446744073709551615 kB\nMemAvailable: 1 kB\n"));
}

TEST(UsageTexts, ProcessTimesBehindAnyName) {
  const std::string rest = " S 1 2 2 0 -1 4194304 1 2 3 4 555 66 0 0 20 0 8 0 7777 1000 50 18446744073709551615 0";
  EXPECT_THAT(parse_process_times("12 (python3)" + rest), Optional(ProcessTimes{555, 66, 7777}));
  EXPECT_THAT(parse_process_times("12 (a) b (c d)" + rest), Optional(ProcessTimes{555, 66, 7777}));
  EXPECT_FALSE(parse_process_times("12 (python3) S 1 2 2 0 -1 4194304 1 2 3 4 555 66"));
  EXPECT_FALSE(parse_process_times("12 python3 S 1 2"));
  EXPECT_FALSE(parse_process_times(""));
}

TEST(UsageTexts, Resident) {
  EXPECT_THAT(parse_resident("300 20 5 1 0 40 0\n", 4096), Optional(81920U));
  EXPECT_FALSE(parse_resident("300", 4096));
  EXPECT_FALSE(parse_resident("300 18446744073709551615", 4096));
}

TEST(UsageTexts, Command) {
  EXPECT_EQ(parse_command("python3\0train.py\0--lr\0"s + "1\0"s), "python3 train.py --lr 1");
  EXPECT_EQ(parse_command(""), "");
  EXPECT_EQ(parse_command("a\x1b[31mb\0"s), "a\\x1b[31mb");
  EXPECT_LE(parse_command(std::string(100000, 'x')).size(), kMaxProcessText);
}

TEST(UsageTexts, TagOnly) {
  EXPECT_THAT(parse_tag("PATH=/bin\0AWS_SECRET=x\0NEURON_PROCESS_TAG=train\0A=b\0"s), Optional("train"s));
  EXPECT_THAT(parse_tag("NEURON_PROCESS_TAG=a\x1b" + std::string("b\0", 2)), Optional("a\\x1bb"s));
  EXPECT_FALSE(parse_tag("PATH=/bin\0XNEURON_PROCESS_TAG=train\0"s));
  EXPECT_FALSE(parse_tag("NEURON_PROCESS_TAG=\0"s));
  EXPECT_FALSE(parse_tag(""));
  EXPECT_LE(parse_tag("NEURON_PROCESS_TAG=" + std::string(1000, 'x'))->size(), kMaxProcessText);
}

}  // namespace
}  // namespace neuron::host
