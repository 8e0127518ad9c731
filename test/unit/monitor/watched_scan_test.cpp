#include "agent/monitor/watched_scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "agent/base/mutex.h"

namespace neuron::monitor {
namespace {

using model::ScanPart;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

ScanPart device(int index) {
  return {ScanPart::Kind::device, index};
}

// A machine of three devices, some of which hang. Scans list the devices that were read.
class Machine {
 public:
  WatchedScan::Scan make() {
    const MutexLock lock(mutex_);
    ++made_;
    return [this](const model::MayRead& may_read) {
      model::HostScan scan;
      for (int index = 0; index < 3; ++index) {
        if (!may_read(device(index))) continue;
        read(index);
        scan.devices.emplace_back().index = index;
      }
      return scan;
    };
  }
  void hang(std::set<int> devices) {
    const MutexLock lock(mutex_);
    hanging_ = std::move(devices);
    changed_.notify_all();
  }
  void wait_until_hung(int index, int times) {
    const MutexLock lock(mutex_);
    while (hung_[index] < times) changed_.wait(mutex_);
  }
  void end() {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  void wait_for_end() {
    const MutexLock lock(mutex_);
    while (!ended_) changed_.wait(mutex_);
    ended_ = false;
  }
  void wait_until_back(int times) {
    const MutexLock lock(mutex_);
    while (back_ < times) changed_.wait(mutex_);
  }
  int made() {
    const MutexLock lock(mutex_);
    return made_;
  }

 private:
  void read(int index) {
    const MutexLock lock(mutex_);
    if (!hanging_.contains(index)) return;
    ++hung_[index];
    changed_.notify_all();
    while (hanging_.contains(index)) changed_.wait(mutex_);
    ++back_;
    changed_.notify_all();
  }

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::set<int> hanging_;
  std::map<int, int> hung_;
  int back_ = 0;
  int made_ = 0;
  bool ended_ = false;
};

struct Watched : testing::Test {
  Machine machine;
  Workers workers;
  WatchedScan scan{workers, [this] { return machine.make(); }, [this] { machine.end(); }};

  // More checks than a budget has, as the monitor takes them while nothing moves.
  void look_long() {
    for (int i = 0; i <= WatchedScan::kChecksPerBudget; ++i) scan.check();
  }
  model::HostScan finish() {
    machine.wait_for_end();
    return scan.take().value();
  }
  static std::vector<int> devices_of(const model::HostScan& host) {
    std::vector<int> indices;
    for (const auto& one : host.devices) indices.push_back(one.index);
    return indices;
  }
  static std::vector<ScanPart> left_out_of(const model::HostScan& host) {
    std::vector<ScanPart> parts;
    for (const auto& one : host.unanswered) parts.push_back(one.part);
    return parts;
  }
};

TEST_F(Watched, AScanThatEndsIsTakenOnceAndItsScannerIsKept) {
  for (int i = 0; i < 2; ++i) {
    scan.begin();
    const model::HostScan host = finish();
    EXPECT_THAT(devices_of(host), ElementsAre(0, 1, 2));
    EXPECT_THAT(host.unanswered, IsEmpty());
    EXPECT_FALSE(scan.take());
  }
  EXPECT_EQ(machine.made(), 1);
}

TEST_F(Watched, WhatHangsIsLeftOutUntilItsReadIsBack) {
  machine.hang({1});
  scan.begin();
  machine.wait_until_hung(1, 1);
  look_long();
  const model::HostScan first = finish();
  EXPECT_THAT(devices_of(first), ElementsAre(0, 2));
  EXPECT_THAT(left_out_of(first), ElementsAre(device(1)));
  EXPECT_THAT(first.unanswered[0].since, StartsWith("20"));
  EXPECT_EQ(machine.made(), 2) << "the scanner that hangs is not used again";

  scan.begin();  // nobody looks: it does not hang again
  const model::HostScan second = finish();
  EXPECT_EQ(second.unanswered, first.unanswered) << "nothing that changes with time";

  machine.hang({});
  machine.wait_until_back(1);
  // The old thread is back from its read; it ends at the next part.
  for (;;) {
    scan.begin();
    const model::HostScan healed = finish();
    if (!healed.unanswered.empty()) continue;
    EXPECT_THAT(devices_of(healed), ElementsAre(0, 1, 2));
    break;
  }
  EXPECT_EQ(machine.made(), 2);
}

TEST_F(Watched, SeveralPartsThatHangAreGivenUpOneAfterAnother) {
  machine.hang({0, 2});
  scan.begin();
  machine.wait_until_hung(0, 1);
  look_long();
  machine.wait_until_hung(2, 1);
  for (int i = 0; i <= WatchedScan::kChecksPerBudget / 2; ++i) scan.check();  // less time for the second
  const model::HostScan host = finish();
  EXPECT_THAT(devices_of(host), ElementsAre(1));
  EXPECT_THAT(left_out_of(host), ElementsAre(device(0), device(2)));
  machine.hang({});
}

TEST_F(Watched, AShortWaitIsNoHang) {
  machine.hang({1});
  scan.begin();
  machine.wait_until_hung(1, 1);
  for (int i = 0; i < WatchedScan::kChecksPerBudget; ++i) scan.check();
  machine.hang({});
  EXPECT_THAT(devices_of(finish()), ElementsAre(0, 1, 2));
  EXPECT_EQ(machine.made(), 1);
}

}  // namespace
}  // namespace neuron::monitor
