#include "agent/monitor/monitor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace neuron::monitor {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Monitor::Timing kRarely{.interval = hours(1), .budget = hours(1)};

model::HostScan host_with_devices(int count) {
  model::HostScan scan;
  for (int i = 0; i < count; ++i) scan.devices.emplace_back().index = i;
  return scan;
}

WatchedScan::MakeScan scans_of(std::function<model::HostScan()> scan) {
  return [scan = std::move(scan)] { return [scan](const model::MayRead&) { return scan(); }; };
}

TEST(Monitor, PublishesEveryScanAndTellsOfANewGenerationOnly) {
  SnapshotStore store;
  std::atomic<int> scans = 0;
  int changes = 0;
  std::promise<void> third;
  Workers workers;
  Monitor monitor(store, workers, scans_of([&] { return host_with_devices(++scans < 3 ? 1 : 2); }),
                  [&](const model::SnapshotPtr& snapshot) {
                    if (++changes == 1) {
                      EXPECT_EQ(snapshot->number, 1U);
                      EXPECT_EQ(snapshot->generation, 1U);
                      EXPECT_EQ(snapshot->host.devices.size(), 1U);
                    } else if (changes == 2) {
                      third.set_value();
                    }
                  },
                  {.interval = milliseconds(1), .budget = hours(1)});
  monitor.start();
  ASSERT_EQ(third.get_future().wait_for(seconds(10)), std::future_status::ready);
  EXPECT_TRUE(monitor.stop(seconds(10)));
  EXPECT_EQ(changes, 2) << "the second scan was as the first";
  EXPECT_EQ(store.newest()->generation, 2U);
  EXPECT_GE(store.newest()->number, 3U) << "each scan is published";
  EXPECT_TRUE(is_assessed(store.newest()->host.devices.at(1).health));
}

TEST(Monitor, AHeartbeatIsNoChange) {
  SnapshotStore store;
  std::atomic<std::uint64_t> beat = 0;
  std::promise<void> third;
  int changes = 0;
  Workers workers;
  Monitor monitor(store, workers, scans_of([&] {
                    if (++beat == 3) third.set_value();
                    model::HostScan scan = host_with_devices(1);
                    scan.devices[0].signals.heartbeat = beat;
                    scan.devices[0].cores.resize(1);
                    scan.devices[0].cores[0].device_memory_bytes = 1024 * beat;
                    return scan;
                  }),
                  [&](const model::SnapshotPtr&) { ++changes; }, {.interval = milliseconds(1), .budget = hours(1)});
  monitor.start();
  ASSERT_EQ(third.get_future().wait_for(seconds(10)), std::future_status::ready);
  EXPECT_TRUE(monitor.stop(seconds(10)));
  EXPECT_EQ(changes, 1) << "the second scan differed by counters alone";
}

// What a quiet node does: errors that were corrected, executions, memory that comes and goes.
model::HostScan busy_host(std::uint64_t count) {
  model::HostScan scan = host_with_devices(2);
  for (model::NeuronDevice& device : scan.devices) {
    device.physical_cores = {1, model::Origin::live};
    device.signals.sram_ecc_uncorrected = device.signals.mem_ecc_uncorrected = 0;
    device.signals.sram_ecc_corrected = device.signals.mem_ecc_corrected = count;
    device.signals.hw_error_events = count;
    device.signals.heartbeat = count % 256;
    device.cores.emplace_back().device_memory_bytes = 1024 * count;
    device.processes.emplace().push_back({4290, 1, 4096 * count, 1024 * count});
  }
  return scan;
}

TEST(Monitor, CountersAloneTellNobodyAndHealthDoes) {
  constexpr std::uint64_t kQuietScans = 5;
  SnapshotStore store;
  std::atomic<std::uint64_t> scans = 0;
  std::vector<model::SnapshotPtr> told;
  std::promise<void> broken;
  Workers workers;
  Monitor monitor(store, workers, scans_of([&] {
                    model::HostScan scan = busy_host(++scans);
                    if (scans > kQuietScans) scan.devices[1].signals.sram_ecc_uncorrected = 3;
                    return scan;
                  }),
                  [&](const model::SnapshotPtr& snapshot) {
                    told.push_back(snapshot);
                    if (snapshot->number > kQuietScans) broken.set_value();
                  },
                  {.interval = milliseconds(1), .budget = hours(1)});
  monitor.start();
  ASSERT_EQ(broken.get_future().wait_for(seconds(10)), std::future_status::ready);
  EXPECT_TRUE(monitor.stop(seconds(10)));
  ASSERT_EQ(told.size(), 2U) << "one view, one list of specs and one event each";
  EXPECT_EQ(told[0]->number, 1U);
  EXPECT_EQ(told[1]->number, kQuietScans + 1);
  EXPECT_EQ(told[1]->generation, 2U);
  EXPECT_EQ(told[1]->host.devices[1].health.reason, "sram_ecc_uncorrected");
  EXPECT_EQ(store.newest()->generation, 2U) << "it stays as broken as it was";
  EXPECT_EQ(store.newest()->host.devices[0].signals.sram_ecc_corrected, store.newest()->number)
      << "whoever wants counters finds them in the newest";
}

TEST(Monitor, ScansAtOnceWhenStartedAndAgainWhenAsked) {
  SnapshotStore store;
  std::atomic<int> scans = 0;
  std::promise<void> first;
  std::promise<void> second;
  Workers workers;
  Monitor monitor(
      store, workers, scans_of([&] { return host_with_devices(++scans); }),
      [&](const model::SnapshotPtr& snapshot) {
        if (snapshot->number == 1) first.set_value();
        if (snapshot->number == 2) second.set_value();
      },
      kRarely);
  monitor.start();
  ASSERT_EQ(first.get_future().wait_for(seconds(10)), std::future_status::ready);
  monitor.rescan_now();
  ASSERT_EQ(second.get_future().wait_for(seconds(10)), std::future_status::ready);
  EXPECT_TRUE(monitor.stop(seconds(10)));
}

TEST(Monitor, RunsJobsInOrderOfTheirTimeEvenWhileAScanHangs) {
  SnapshotStore store;
  std::promise<void> entered;
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::vector<int> order;
  std::promise<void> done;
  Workers workers;
  Monitor monitor(
      store, workers, scans_of([&] {
        entered.set_value();
        released.wait();
        return host_with_devices(0);
      }),
      [](const model::SnapshotPtr&) {}, kRarely);
  monitor.start();
  entered.get_future().wait();
  const SteadyTime now = std::chrono::steady_clock::now();
  monitor.post(now + milliseconds(20), [&] {
    order.push_back(2);
    done.set_value();
  });
  monitor.post(now, [&] { order.push_back(1); });
  ASSERT_EQ(done.get_future().wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_TRUE(monitor.stop(seconds(10))) << "its end does not wait for the scan";
  release.set_value();
}

TEST(Monitor, ADeviceThatHangsIsJudgedAndTheOthersGoOn) {
  SnapshotStore store;
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::atomic<bool> hangs = true;
  std::promise<model::SnapshotPtr> silent;
  std::promise<model::SnapshotPtr> healed;
  const auto scan = [&](const model::MayRead& may_read) {
    model::HostScan host;
    for (int index = 0; index < 2; ++index) {
      model::NeuronDevice& device = host.devices.emplace_back();
      device.index = index;
      if (!may_read({model::ScanPart::Kind::device, index})) device.presence = model::Presence::not_answering;
      if (device.presence == model::Presence::present && index == 0 && hangs) released.wait();
    }
    return host;
  };
  Workers workers;
  Monitor monitor(
      store, workers, [&] { return scan; },
      [&](const model::SnapshotPtr& snapshot) {
        if (snapshot->generation == 1) silent.set_value(snapshot);
        if (snapshot->generation == 2) healed.set_value(snapshot);
      },
      {.interval = milliseconds(5), .budget = milliseconds(40)});
  monitor.start();
  auto first = silent.get_future();
  ASSERT_EQ(first.wait_for(seconds(10)), std::future_status::ready);
  const model::SnapshotPtr snapshot = first.get();
  ASSERT_EQ(snapshot->host.devices.size(), 2U);
  EXPECT_EQ(snapshot->host.devices[0].health.state, model::HealthState::unhealthy);
  EXPECT_EQ(snapshot->host.devices[0].health.reason, "not_answering");
  EXPECT_NE(snapshot->host.devices[1].health.state, model::HealthState::unhealthy);
  hangs = false;
  release.set_value();
  auto second = healed.get_future();
  ASSERT_EQ(second.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_NE(second.get()->host.devices[0].health.state, model::HealthState::unhealthy);
  EXPECT_TRUE(monitor.stop(seconds(10)));
}

}  // namespace
}  // namespace neuron::monitor
