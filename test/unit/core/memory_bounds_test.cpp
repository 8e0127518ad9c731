#include "agent/core/complete.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::optional<std::uint64_t>;

constexpr std::uint64_t kBelowZero = 18446744073709550616U;  // -1000

TEST(MemoryBounds, OfAScan) {
  model::HostScan scan = core::complete(silent_scan("inf2.xlarge"));
  model::NeuronDevice& device = scan.devices.front();
  device.cores[0].device_memory_bytes = *device.memory_bytes;
  device.cores[1].device_memory_bytes = *device.memory_bytes + 1;
  device.processes = {{1, 1, kBelowZero, 4096}, {2, 2, 4096, kBelowZero}};
  core::forget_impossible_memory(scan);
  EXPECT_EQ(device.cores[0].device_memory_bytes, device.memory_bytes);
  EXPECT_EQ(device.cores[1].device_memory_bytes, std::nullopt);
  EXPECT_THAT(sentences(device.problems),
              ElementsAre(HasSubstr("neuron_core1/stats/memory_usage/device_mem/total: more than")));
  EXPECT_THAT(*device.processes,
              ElementsAre(model::Process{1, 1, std::nullopt, 4096}, model::Process{2, 2, 4096, std::nullopt}));
}

TEST(MemoryBounds, OfADeviceWhoseMemoryNobodyKnows) {
  model::HostScan scan;
  std::vector<model::CoreSignals>& cores = scan.devices.emplace_back().cores;
  cores.resize(2);
  cores[0].device_memory_bytes = 1U << 30U;
  cores[1].device_memory_bytes = kBelowZero;
  core::forget_impossible_memory(scan);
  EXPECT_EQ(scan.devices[0].cores[0].device_memory_bytes, 1U << 30U);
  EXPECT_EQ(scan.devices[0].cores[1].device_memory_bytes, std::nullopt);
  EXPECT_THAT(scan.devices[0].problems, ::testing::SizeIs(1));
}

TEST(MemoryBounds, OfASample) {
  const model::HostScan scan = core::complete(silent_scan("inf2.xlarge"));
  model::UsageSample sample;
  sample.memory = model::HostMemoryUsage{4096, 1, {}, {}};
  model::DeviceUsage& device = sample.devices.emplace_back();
  device.host_memory[0] = 4097;
  device.host_memory[1] = 4096;
  model::CoreUsage& core = device.cores.emplace_back();
  core.device_memory_bytes = core.host_memory_bytes = core.device_memory[3] = kBelowZero;
  core.device_memory[4] = 4097;  // of the device's 32 GiB
  core::forget_impossible_memory(sample, scan);
  EXPECT_EQ(device.host_memory[0], std::nullopt);
  EXPECT_EQ(device.host_memory[1], 4096U);
  EXPECT_EQ(core.device_memory_bytes, std::nullopt);
  EXPECT_EQ(core.host_memory_bytes, std::nullopt);
  EXPECT_EQ(core.device_memory[3], std::nullopt);
  EXPECT_EQ(core.device_memory[4], 4097U);
}

TEST(MemoryBounds, SumsAreWholeOrUnknown) {
  Bytes sum = 1;
  core::add_bytes(sum, 2);
  EXPECT_EQ(sum, 3U);
  core::add_bytes(sum, kBelowZero);
  EXPECT_EQ(sum, kBelowZero + 3);
  core::add_bytes(sum, 4096);
  EXPECT_EQ(sum, std::nullopt) << "no wraparound";
  core::add_bytes(sum, 1);
  EXPECT_EQ(sum, std::nullopt) << "a known part does not make it known again";
}

}  // namespace
}  // namespace neuron::test
