#include "agent/monitor/monitor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace neuron::monitor {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

model::HostScan host_with_devices(int count) {
  model::HostScan scan;
  for (int i = 0; i < count; ++i) scan.devices.emplace_back().index = i;
  return scan;
}

TEST(Monitor, PublishesNumberedSnapshotsOnlyWhenSomethingChanged) {
  SnapshotStore store;
  int devices = 1;
  int changes = 0;
  Monitor monitor(
      store, [&] { return host_with_devices(devices); }, [&](const model::SnapshotPtr&) { ++changes; }, hours(1));
  monitor.tick();
  monitor.tick();
  EXPECT_EQ(changes, 1);
  ASSERT_NE(store.newest(), nullptr);
  EXPECT_EQ(store.newest()->number, 1U);
  devices = 2;
  monitor.tick();
  EXPECT_EQ(changes, 2);
  EXPECT_EQ(store.newest()->number, 2U);
  EXPECT_EQ(store.newest()->host.devices.size(), 2U);
  EXPECT_EQ(store.newest()->device_health.size(), 2U);
}

TEST(Monitor, AHeartbeatIsNoChange) {
  SnapshotStore store;
  std::uint64_t beat = 0;
  int changes = 0;
  Monitor monitor(
      store,
      [&] {
        model::HostScan scan = host_with_devices(1);
        scan.devices[0].signals.heartbeat = ++beat;
        scan.devices[0].cores.resize(1);
        scan.devices[0].cores[0].device_memory_bytes = 1024 * beat;
        return scan;
      },
      [&](const model::SnapshotPtr&) { ++changes; }, hours(1));
  monitor.tick();
  monitor.tick();
  EXPECT_EQ(changes, 1);
}

TEST(Monitor, ScansAtOnceWhenStartedAndAgainWhenAsked) {
  SnapshotStore store;
  std::atomic<int> scans = 0;
  std::promise<void> first;
  std::promise<void> second;
  Monitor monitor(
      store, [&] { return host_with_devices(++scans); },
      [&](const model::SnapshotPtr& snapshot) {
        if (snapshot->number == 1) first.set_value();
        if (snapshot->number == 2) second.set_value();
      },
      hours(1));
  monitor.start();
  ASSERT_EQ(first.get_future().wait_for(seconds(10)), std::future_status::ready);
  monitor.rescan_now();
  ASSERT_EQ(second.get_future().wait_for(seconds(10)), std::future_status::ready);
  EXPECT_TRUE(monitor.stop(seconds(10)));
}

TEST(Monitor, RunsJobsOnTheWorkerInOrderOfTheirTime) {
  SnapshotStore store;
  Monitor monitor(
      store, [] { return host_with_devices(0); }, [](const model::SnapshotPtr&) {}, hours(1));
  std::vector<int> order;
  std::promise<void> done;
  const SteadyTime now = std::chrono::steady_clock::now();
  monitor.post(now + milliseconds(20), [&] {
    order.push_back(2);
    done.set_value();
  });
  monitor.post(now, [&] { order.push_back(1); });
  monitor.start();
  ASSERT_EQ(done.get_future().wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Monitor, StopLeavesAScanBehindThatHangsInTheDriver) {
  struct Shared {
    std::promise<void> entered;
    std::promise<void> release;
  };
  auto shared = std::make_shared<Shared>();
  static SnapshotStore store;  // outlives the worker that is left behind
  std::promise<void> left;
  auto left_future = left.get_future();
  {
    Monitor monitor(
        store,
        [shared, &left] {
          shared->entered.set_value();
          shared->release.get_future().wait();
          left.set_value();
          return model::HostScan{};
        },
        [](const model::SnapshotPtr&) {}, hours(1));
    monitor.start();
    shared->entered.get_future().wait();
    EXPECT_FALSE(monitor.stop(milliseconds(20)));
  }
  shared->release.set_value();
  EXPECT_EQ(left_future.wait_for(seconds(10)), std::future_status::ready);
}

}  // namespace
}  // namespace neuron::monitor
