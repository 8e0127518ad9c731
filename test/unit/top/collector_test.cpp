// Collector on simulated machines; options.
#include "tools/neuron-top/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/fakes/fake_host.h"
#include "tools/neuron-top/options.h"
#include "tools/screen/view_model.h"

namespace neuron::top {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr const char* kCoreFolder = "/sys/class/neuron_device/neuron0/neuron_core0/stats/";

std::unique_ptr<Collector> open(const fakes::FakeHost& host) {
  CollectorOptions options;
  options.root = host.path();
  auto collector = Collector::open(options);
  EXPECT_TRUE(collector) << collector.error().message;
  return *std::move(collector);
}

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  ASSERT_TRUE(file.good()) << path;
}

TEST(Collector, ReadsWhatIsAskedFor) {
  fakes::FakeHost host("trn2.48xlarge");
  host.write();
  host.set("neuron0", "power=POWER_STATUS_VALID,1789180860,1.00,3.00,2.00");
  const auto collector = open(host);
  model::UsageRequest request;
  request.efa = request.power = false;
  const Moment without = collector->collect(request);
  EXPECT_EQ(without.scan.devices.size(), 16U);
  EXPECT_TRUE(is_assessed(without.scan.devices.at(15).health));
  EXPECT_EQ(without.rates.cores.size(), 64U);
  EXPECT_EQ(without.rates.seconds, 0) << "one sample gives no rates";
  EXPECT_FALSE(without.sample.devices.front().power);
  EXPECT_TRUE(without.sample.efas.empty() || without.sample.efas.front().counters.empty());
  EXPECT_THAT(without.no_pods, HasSubstr("--pods"));
  request.efa = request.power = true;
  const Moment with = collector->collect(request);
  EXPECT_TRUE(with.sample.devices.front().power);
  EXPECT_FALSE(with.sample.efas.front().counters.empty());
}

TEST(Collector, KindsOfMemoryFollowTheTotals) {
  fakes::FakeHost host("inf2.xlarge");
  host.write();
  const auto collector = open(host);
  const auto first = make_view_model(collector->collect({}));
  const auto tensors = static_cast<std::size_t>(model::DeviceMemoryKind::tensors);
  ASSERT_EQ(first.devices.front().cores.front().kinds[tensors], 0U);
  write(host.path() + kCoreFolder + "memory_usage/device_mem/tensors/total", "4096\n");
  const auto unchanged = make_view_model(collector->collect({}));
  EXPECT_EQ(unchanged.devices.front().cores.front().kinds[tensors], 0U) << "not read while the total stands still";
  write(host.path() + kCoreFolder + "memory_usage/device_mem/total", "4096\n");
  const auto moved = make_view_model(collector->collect({}));
  EXPECT_EQ(moved.devices.front().device_bytes, 4096U);
  EXPECT_EQ(moved.devices.front().cores.front().kinds[tensors], 4096U);
  EXPECT_EQ(moved.devices.front().cores.back().kinds[tensors], 0U) << "kept for the other core";
}

TEST(Collector, KindsOfMemoryOfANewDeviceAreReadAtOnce) {
  fakes::FakeHost host("trn1.32xlarge");
  host.write();
  const std::string device = host.path() + "/sys/class/neuron_device/neuron4";
  const auto target = std::filesystem::read_symlink(device);
  std::filesystem::remove(device);
  CollectorOptions options;
  options.root = host.path();
  options.scan_every = milliseconds(0);
  const auto collector = Collector::open(options);
  ASSERT_TRUE(collector);
  ASSERT_EQ((*collector)->collect({}).scan.devices.size(), 15U);
  std::filesystem::create_symlink(target, device);
  const auto model = make_view_model((*collector)->collect({}));
  ASSERT_EQ(model.devices.size(), 16U);
  EXPECT_EQ(model.devices[4].cores.front().kinds[0], 0U);
}

TEST(Collector, WhatCannotBeReadIsUnknown) {
  fakes::FakeHost host("inf2.xlarge");
  host.write();
  const std::string total = host.path() + kCoreFolder + "memory_usage/device_mem/total";
  std::filesystem::remove(total);
  std::filesystem::create_directory(total);
  const auto model = make_view_model(open(host)->collect({}));
  EXPECT_FALSE(model.devices.front().cores.front().device_bytes);
  EXPECT_FALSE(model.devices.front().device_bytes) << "a sum with a part missing";
  EXPECT_FALSE(model.devices.front().percent);
}

// A counter that was cleared in use reads as almost 2^64 after the next free; added up it would look plausible.
TEST(Collector, MoreMemoryThanThereIsIsUnknown) {
  constexpr const char* kBelowZero = "18446744073709550616\n";
  fakes::FakeHost host("inf2.xlarge");
  host.write();
  write(host.path() + kCoreFolder + "memory_usage/device_mem/total", kBelowZero);
  write(host.path() + kCoreFolder + "memory_usage/device_mem/tensors/total", kBelowZero);
  write(host.path() + kCoreFolder + "memory_usage/host_mem/total", kBelowZero);
  const std::string device = host.path() + "/sys/class/neuron_device/neuron0/";
  write(device + "neuron_core1/stats/memory_usage/device_mem/total", "4096\n");
  write(device + "neuron_core1/stats/memory_usage/host_mem/total", "4096\n");
  write(device + "stats/memory_usage/host_mem/tensors/total", kBelowZero);
  write(device + "stats/memory_usage/host_mem/constants/total", "4096\n");
  const auto model = make_view_model(open(host)->collect({}));
  const screen::DeviceView& view = model.devices.front();
  EXPECT_FALSE(view.cores.front().device_bytes);
  EXPECT_FALSE(view.cores.front().host_bytes);
  EXPECT_FALSE(view.cores.front().kinds[static_cast<std::size_t>(model::DeviceMemoryKind::tensors)]);
  EXPECT_EQ(view.cores.back().device_bytes, 4096U);
  EXPECT_FALSE(view.device_bytes);
  EXPECT_FALSE(view.host_bytes);
  EXPECT_THAT(view.problems, ::testing::Contains(HasSubstr("device_mem/total: more than the device has")));
}

// Each part is possible, all of them together are not.
TEST(Collector, ASumAboveTheDevicesMemoryIsUnknown) {
  fakes::FakeHost host("inf2.xlarge");
  host.write();
  for (const char* core : {"0", "1"}) {
    write(host.path() + "/sys/class/neuron_device/neuron0/neuron_core" + core + "/stats/memory_usage/device_mem/total",
          "34359738368\n");
  }
  const auto model = make_view_model(open(host)->collect({}));
  EXPECT_EQ(model.devices.front().cores.front().device_bytes, 34359738368U);
  EXPECT_FALSE(model.devices.front().device_bytes);
}

TEST(Collector, OldDriversSayWhy) {
  fakes::FakeHost host("trn1.32xlarge");
  host.driver("2.27.4.0").write();
  const auto model = make_view_model(open(host)->collect({}));
  EXPECT_THAT(model.no_utilization, HasSubstr("2.27.4.0"));
  EXPECT_FALSE(model.mean_percent);
}

TEST(Collector, NoDriver) {
  fakes::FakeHost host("trn1.32xlarge");
  host.write();
  std::filesystem::remove_all(host.path() + "/sys/class/neuron_device");
  std::filesystem::remove_all(host.path() + "/sys/module/neuron");
  const auto model = make_view_model(open(host)->collect({}));
  EXPECT_TRUE(model.devices.empty());
  EXPECT_THAT(model.no_devices, HasSubstr("modprobe neuron"));
}

TEST(Collector, NeedsADirectory) {
  CollectorOptions options;
  options.root = "/nonexistent";
  EXPECT_FALSE(Collector::open(options));
}

TEST(Options, Defaults) {
  const char* argv[] = {"neuron-top"};
  const auto request = parse_options(1, argv);
  ASSERT_TRUE(request);
  const auto& options = std::get<Options>(*request);
  EXPECT_FALSE(options.once || options.json || options.no_wait || options.with_pods);
  EXPECT_EQ(options.interval, milliseconds(1000));
  EXPECT_EQ(options.root, "/");
}

TEST(Options, Intervals) {
  EXPECT_EQ(*parse_interval("1"), milliseconds(1000));
  EXPECT_EQ(*parse_interval("0.5"), milliseconds(500));
  EXPECT_EQ(*parse_interval("200ms"), milliseconds(200));
  EXPECT_EQ(*parse_interval("1m"), milliseconds(60'000));
  EXPECT_EQ(*parse_interval("1h"), std::chrono::hours(1));
  EXPECT_EQ(*parse_interval("0"), milliseconds(0));
  for (const char* text :
       {"", "soon", "-1", "0.1", "199ms", "3601", "1e3", "nan", "inf", "0,5", "1 2", "2h", "h", "-1h"}) {
    EXPECT_FALSE(parse_interval(text)) << text;
  }
}

TEST(Options, FlagOverEnvironment) {
  ::setenv("NEURON_TOP_ROOT", "/env", 1);
  ::setenv("NEURON_TOP_INTERVAL", "5", 1);
  const char* argv[] = {"neuron-top", "--root", "/flag"};
  const auto request = parse_options(3, argv);
  ::unsetenv("NEURON_TOP_ROOT");
  ::unsetenv("NEURON_TOP_INTERVAL");
  ASSERT_TRUE(request);
  EXPECT_EQ(std::get<Options>(*request).root, "/flag");
  EXPECT_EQ(std::get<Options>(*request).interval, milliseconds(5000));
}

TEST(Options, IntervalZeroIsNoWait) {
  const char* argv[] = {"neuron-top", "--interval", "0"};
  const auto request = parse_options(3, argv);
  ASSERT_TRUE(request);
  EXPECT_TRUE(std::get<Options>(*request).no_wait);
}

}  // namespace
}  // namespace neuron::top
