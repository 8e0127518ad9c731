#include "agent/core/usage_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace neuron::test {
namespace {

using model::UsageSample;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::SizeIs;
using namespace std::chrono_literals;

// One Trainium2 device of eight physical cores, two per logical core, in the driver's order 4,5,6,7,2,3,0,1.
model::HostScan trn2_scan() {
  model::HostScan scan;
  scan.lnc = {2, model::Origin::assumed};
  auto& device = scan.devices.emplace_back();
  device.index = 3;
  device.family = model::Family::trainium2;
  device.physical_cores = {8, model::Origin::live};
  device.logical_to_physical = {4, 5, 6, 7, 2, 3, 0, 1};
  return scan;
}

// Core M has worked (M + 1) * 10 per cent of `seconds`, has done M operations a second and holds M bytes.
UsageSample sample(double seconds) {
  UsageSample sample;
  sample.at = std::chrono::steady_clock::time_point() + std::chrono::milliseconds(static_cast<int>(seconds * 1000));
  auto& device = sample.devices.emplace_back();
  device.index = 3;
  for (int i = 0; i < 8; ++i) {
    auto& core = device.cores.emplace_back();
    core.physical_index = i;
    core.busy_us = 1000 + static_cast<std::uint64_t>(seconds * 100000 * (i + 1));
    core.flops = static_cast<std::uint64_t>(seconds * i);
    core.inferences = static_cast<std::uint64_t>(seconds * 7);
    core.device_memory_bytes = static_cast<std::uint64_t>(i);
    core.host_memory_bytes = 2;
    core.device_memory.fill(static_cast<std::uint64_t>(i) * 10);
  }
  return sample;
}

TEST(UsageRates, LogicalCoresAreTheirPhysicalCoresInTheDriversOrder) {
  const auto rates = core::usage_rates(sample(10), sample(12), trn2_scan());
  EXPECT_DOUBLE_EQ(rates.seconds, 2);
  ASSERT_THAT(rates.cores, SizeIs(4));
  const core::CoreRates& first = rates.cores[0];
  EXPECT_EQ(first.id, 12);
  EXPECT_EQ(first.device, 3);
  EXPECT_THAT(first.physical, ElementsAre(4, 5));
  EXPECT_THAT(first.utilization_percent, Optional(DoubleNear(55, 1e-6)));  // mean of 50 and 60
  EXPECT_THAT(first.flops_per_second, Optional(9.0));
  EXPECT_THAT(first.inferences_per_second, Optional(14.0));
  EXPECT_THAT(first.device_memory_bytes, Optional(9U));
  EXPECT_THAT(first.host_memory_bytes, Optional(4U));
  EXPECT_THAT(first.device_memory[0], Optional(90U));
  EXPECT_THAT(rates.cores[3].physical, ElementsAre(0, 1));
  EXPECT_THAT(rates.mean_utilization, Optional(DoubleNear(45, 1e-6)));
}

TEST(UsageRates, OrderOfTheFamilyWhereTheDriverIsSilent) {
  auto scan = trn2_scan();
  scan.devices[0].logical_to_physical.reset();
  EXPECT_THAT(core::usage_rates(sample(1), sample(2), scan).cores[0].physical, ElementsAre(2, 3));  // an odd device
  scan.devices[0].family.reset();
  EXPECT_THAT(core::usage_rates(sample(1), sample(2), scan).cores[0].physical, ElementsAre(0, 1));
}

TEST(UsageRates, WithoutCoreCountOrLncThereAreNoLogicalCores) {
  auto scan = trn2_scan();
  scan.lnc.reset();
  EXPECT_THAT(core::usage_rates(sample(1), sample(2), scan).cores, IsEmpty());
  scan = trn2_scan();
  scan.devices[0].physical_cores.reset();
  EXPECT_THAT(core::usage_rates(sample(1), sample(2), scan).cores, IsEmpty());
}

TEST(UsageRates, FirstSampleHasMemoryAndNoRates) {
  const auto only = sample(5);
  const auto rates = core::usage_rates(only, only, trn2_scan());
  EXPECT_EQ(rates.seconds, 0);
  ASSERT_THAT(rates.cores, SizeIs(4));
  EXPECT_FALSE(rates.cores[0].utilization_percent);
  EXPECT_FALSE(rates.cores[0].flops_per_second);
  EXPECT_FALSE(rates.mean_utilization);
  EXPECT_THAT(rates.cores[0].device_memory_bytes, Optional(9U));
  // As a clock that stands still, one that goes back.
  EXPECT_FALSE(core::usage_rates(sample(5), sample(4), trn2_scan()).mean_utilization);
}

TEST(UsageRates, CounterThatWentBackwardsIsUnknownOnlyWhereItMatters) {
  const auto before = sample(1);
  auto now = sample(2);
  now.devices[0].cores[5].busy_us = 3;  // cleared by root, then counted on
  const auto rates = core::usage_rates(before, now, trn2_scan());
  EXPECT_FALSE(rates.cores[0].utilization_percent);  // cores 4 and 5
  EXPECT_TRUE(rates.cores[0].flops_per_second);
  EXPECT_TRUE(rates.cores[1].utilization_percent);
  EXPECT_THAT(rates.mean_utilization, Optional(DoubleNear((75 + 35 + 15) / 3.0, 1e-6)));
}

TEST(UsageRates, UnreadableIsUnknownAndNeverIdle) {
  const auto before = sample(1);
  auto now = sample(2);
  now.devices[0].cores[4].busy_us.reset();
  now.devices[0].cores[4].device_memory_bytes.reset();
  const auto rates = core::usage_rates(before, now, trn2_scan());
  EXPECT_FALSE(rates.cores[0].utilization_percent);
  EXPECT_FALSE(rates.cores[0].device_memory_bytes);
}

TEST(UsageRates, VanishedCoresAndDevicesAreUnknown) {
  const auto before = sample(1);
  auto now = sample(2);
  now.devices[0].cores.resize(4);
  auto rates = core::usage_rates(before, now, trn2_scan());
  EXPECT_FALSE(rates.cores[0].utilization_percent);
  EXPECT_TRUE(rates.cores[2].utilization_percent);
  now.devices.clear();
  rates = core::usage_rates(before, now, trn2_scan());
  ASSERT_THAT(rates.cores, SizeIs(4));
  EXPECT_FALSE(rates.cores[2].utilization_percent);
  EXPECT_FALSE(rates.cores[2].device_memory_bytes);
  EXPECT_FALSE(rates.mean_utilization);
  // And one that is new has no past.
  EXPECT_FALSE(core::usage_rates(now, sample(3), trn2_scan()).cores[2].utilization_percent);
}

TEST(UsageRates, ShortMapOfCoresLeavesTheRestUnknown) {
  auto scan = trn2_scan();
  scan.devices[0].logical_to_physical = {0, 1};
  EXPECT_THAT(core::usage_rates(sample(1), sample(2), scan).cores[0].physical,
              ElementsAre(2, 3));  // the family's order
}

TEST(UsageRates, BusierThanTimeAllowsIsRoundedOnlyWithinTheSlackOfReading) {
  const auto before = sample(1);
  auto now = before;
  now.at += 1s;
  for (const int core : {4, 5}) *now.devices[0].cores[static_cast<std::size_t>(core)].busy_us += 1'019'000;
  EXPECT_THAT(core::usage_rates(before, now, trn2_scan()).cores[0].utilization_percent, Optional(100.0));
  *now.devices[0].cores[4].busy_us += 10'000;
  EXPECT_FALSE(core::usage_rates(before, now, trn2_scan()).cores[0].utilization_percent);
}

model::EfaUsage efa(std::map<std::string, std::uint64_t> counters) {
  return {"rdmap16s25", std::move(counters)};
}

TEST(UsageRates, EfaBytesAndErrors) {
  UsageSample before = sample(1);
  UsageSample now = sample(3);
  before.efas = {efa({{"rx_bytes", 100}, {"tx_bytes", 50}, {"rx_drops", 4}, {"cmds_err", 1}, {"tx_pkts", 9}})};
  now.efas = {efa({{"rx_bytes", 300}, {"tx_bytes", 40}, {"rx_drops", 10}, {"cmds_err", 1}, {"send_wrs", 9}})};
  const auto rates = core::usage_rates(before, now, trn2_scan());
  ASSERT_THAT(rates.efas, SizeIs(1));
  EXPECT_EQ(rates.efas[0].name, "rdmap16s25");
  EXPECT_THAT(rates.efas[0].rx_bytes_per_second, Optional(100.0));
  EXPECT_FALSE(rates.efas[0].tx_bytes_per_second);  // went backwards
  EXPECT_FALSE(rates.efas[0].retrans_per_second);   // not there
  EXPECT_THAT(rates.efas[0].errors_per_second, Optional(3.0));
  EXPECT_THAT(rates.efas[0].error, ElementsAre(Pair("rx_drops", 6U)));
  EXPECT_THAT(rates.efas[0].per_second,
              ElementsAre(Pair("cmds_err", 0.0), Pair("rx_bytes", 100.0), Pair("rx_drops", 3.0)));
}

TEST(UsageRates, NewInterfaceAndOneWithoutErrorCounters) {
  UsageSample before = sample(1);
  UsageSample now = sample(3);
  now.efas = {efa({{"rx_bytes", 300}, {"rx_drops", 10}})};
  EXPECT_FALSE(core::usage_rates(before, now, trn2_scan()).efas[0].rx_bytes_per_second);
  EXPECT_FALSE(core::usage_rates(before, now, trn2_scan()).efas[0].errors_per_second);
}

TEST(UsageRates, ErrorCountersAreSorted) {
  const auto names = core::efa_error_counters();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

UsageSample with_cpu(double seconds, model::CpuTicks ticks, std::vector<model::ProcessUsage> processes = {}) {
  UsageSample result = sample(seconds);
  result.cpu = ticks;
  result.processes = std::move(processes);
  return result;
}

model::ProcessUsage process(std::uint64_t user, std::uint64_t system, std::uint64_t start) {
  model::ProcessUsage usage;
  usage.pid = 77;
  usage.user_ticks = user;
  usage.system_ticks = system;
  usage.start_ticks = start;
  return usage;
}

TEST(UsageRates, VcpusOfTheMachineAndOfProcesses) {
  const auto before = with_cpu(1, {100, 50, 1000, 0}, {process(10, 5, 9)});
  const auto now = with_cpu(2, {150, 60, 1130, 10}, {process(30, 9, 9)});
  const auto rates = core::usage_rates(before, now, trn2_scan());
  ASSERT_TRUE(rates.cpu);
  EXPECT_DOUBLE_EQ(rates.cpu->user_percent, 25);
  EXPECT_DOUBLE_EQ(rates.cpu->system_percent, 5);
  EXPECT_DOUBLE_EQ(rates.cpu->steal_percent, 5);
  ASSERT_THAT(rates.processes, SizeIs(1));
  EXPECT_THAT(rates.processes[0].user_percent, Optional(10.0));
  EXPECT_THAT(rates.processes[0].system_percent, Optional(2.0));
  EXPECT_EQ(rates.all_processes, (core::ProcessRates{0, 10.0, 2.0}));
}

TEST(UsageRates, RestartedProcessHasNoPast) {
  const auto before = with_cpu(1, {100, 50, 1000, 0}, {process(10, 5, 9)});
  for (const auto& other : {process(30, 9, 10), process(3, 9, 9)}) {
    const auto rates = core::usage_rates(before, with_cpu(2, {150, 60, 1130, 10}, {other}), trn2_scan());
    ASSERT_THAT(rates.processes, SizeIs(1));
    EXPECT_FALSE(rates.processes[0].user_percent);
    EXPECT_FALSE(rates.all_processes);
  }
}

TEST(UsageRates, VcpusUnknownWithoutProcStatOrWhenItWentBackwards) {
  const auto before = with_cpu(1, {100, 50, 1000, 0}, {process(10, 5, 9)});
  auto now = with_cpu(2, {99, 60, 1130, 10}, {process(30, 9, 9)});
  EXPECT_FALSE(core::usage_rates(before, now, trn2_scan()).cpu);
  EXPECT_FALSE(core::usage_rates(before, now, trn2_scan()).processes[0].user_percent);
  now.cpu.reset();
  EXPECT_FALSE(core::usage_rates(before, now, trn2_scan()).cpu);
  EXPECT_FALSE(core::usage_rates(before, with_cpu(2, {100, 50, 1000, 0}), trn2_scan()).cpu);  // no time has passed
}

// An idle machine counts idle ticks; one that counts none is a capture, about which rates say nothing.
TEST(UsageRates, ACaptureIsNotAnIdleMachine) {
  auto before = with_cpu(1, {100, 50, 1000, 0});
  before.efas = {efa({{"rx_bytes", 100}})};
  auto now = before;
  now.at += 1s;
  const auto rates = core::usage_rates(before, now, trn2_scan());
  EXPECT_TRUE(rates.stands_still);
  EXPECT_FALSE(rates.mean_utilization);
  EXPECT_FALSE(rates.cores[0].utilization_percent);
  EXPECT_FALSE(rates.efas[0].rx_bytes_per_second);
  EXPECT_THAT(rates.cores[0].device_memory_bytes, Optional(9U));
  now.cpu->idle += 1;
  EXPECT_THAT(core::usage_rates(before, now, trn2_scan()).mean_utilization, Optional(0.0));
  EXPECT_FALSE(core::usage_rates(before, now, trn2_scan()).stands_still);
  now.cpu = before.cpu;
  now.at = before.at + 5ms;
  EXPECT_FALSE(core::usage_rates(before, now, trn2_scan()).stands_still) << "too early to tell";
  EXPECT_EQ(core::usage_rates(before, now, trn2_scan()).seconds, 0);
}

TEST(UsageRates, IowaitThatStepsBackIsNoReasonToKnowNothing) {
  const auto before = with_cpu(1, {100, 50, 1000, 0});
  const auto rates = core::usage_rates(before, with_cpu(2, {190, 60, 999, 0}), trn2_scan());
  ASSERT_TRUE(rates.cpu);
  EXPECT_DOUBLE_EQ(rates.cpu->user_percent, 90);
}

}  // namespace
}  // namespace neuron::test
