#include "tools/neuron-gather/reading_watch.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "agent/base/fd.h"
#include "test/unit/host/temp_tree.h"

namespace neuron::gather {
namespace {

using std::chrono::milliseconds;

// Where nothing hangs: never waited for.
constexpr milliseconds kBudget{60'000};
// Where one read hangs: waited for, and long against anything that a loaded machine does between two steps.
constexpr milliseconds kShortBudget{4000};

TEST(ReadingWatchTest, PassesOnWhatTheWorkReturned) {
  EXPECT_EQ(run_watched([](ReadingWatch&) { return 7; }, kBudget), 7);
}

TEST(ReadingWatchTest, ADeadWorkIsAnError) {
  EXPECT_EQ(run_watched([](ReadingWatch&) { return ::raise(SIGKILL); }, kBudget), -1);
}

// The first run hangs for good at one file of neuron3; the second one leaves out that device and nothing else.
TEST(ReadingWatchTest, WhatDoesNotAnswerIsLeftOutTheSecondTime) {
  const std::string device = "sys/devices/virtual/neuron_device/neuron3";
  const auto work = [&](ReadingWatch& watch) {
    int code = 0;
    if (watch.permit("sys/devices/virtual/neuron_device/neuron30/reset")) code |= 1;
    if (watch.permit(device + "/stats/x")) {
      for (;;) ::pause();
    }
    if (!watch.permit(device)) code |= 2;
    if (watch.permit("proc/cpuinfo")) code |= 4;
    watch.reading_done();
    return code;
  };
  EXPECT_EQ(run_watched(work, kShortBudget), 7);
}

// A child that was ended from outside leaves nothing half written.
TEST(ReadingWatchTest, WhatADeadWorkWasWritingGoes) {
  host::TempTree tree;
  EXPECT_EQ(run_watched(
                [&](ReadingWatch& watch) {
                  if (!watch.begin_output({tree.at("new.partial")})) return 1;
                  tree.write("new.partial/sys/half", "half");
                  return ::raise(SIGKILL);
                },
                kBudget),
            -1);
  EXPECT_NE(::access(tree.at("new.partial").c_str(), F_OK), 0);
  tree.write("given/half", "half");
  EXPECT_EQ(run_watched(
                [&](ReadingWatch& watch) {
                  return watch.begin_output({tree.at("given"), true}) ? ::raise(SIGKILL) : 1;
                },
                kBudget),
            -1);
  EXPECT_THAT(*tree.root().list("given"), ::testing::IsEmpty());
}

// The same when a signal ends the program in the midst of it.
TEST(ReadingWatchTest, ASignalEndsTheWorkToo) {
  host::TempTree tree;
  const pid_t program = ::getpid();
  const auto work = [&](ReadingWatch& watch) {
    watch.reading_done();
    if (!watch.begin_output({tree.at("a.partial")})) return 1;
    tree.write("a.partial", "half");
    ::kill(program, SIGTERM);
    for (;;) ::pause();
  };
  EXPECT_EQ(run_watched(work, kBudget), 128 + SIGTERM);
  EXPECT_NE(::access(tree.at("a.partial").c_str(), F_OK), 0);
}

// Killed by force, the program can end nothing; its child ends all the same. The pipe closes with the last of them.
TEST(ReadingWatchTest, TheWorkDoesNotOutliveTheProgram) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t program = ::fork();
  if (program == 0) {
    const pid_t self = ::getpid();
    ::_exit(run_watched(
        [&](ReadingWatch& watch) {
          watch.reading_done();
          ::kill(self, SIGKILL);
          for (;;) ::pause();
          return 0;
        },
        kBudget));
  }
  const Fd reader(ends[0]);
  ::close(ends[1]);
  pollfd closed{reader.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&closed, 1, 60'000), 1) << "the child is still there";
  ::waitpid(program, nullptr, 0);
}

TEST(ReadingWatchTest, PartsAreDevicesAndInterfaces) {
  EXPECT_EQ(part_of("sys/devices/virtual/neuron_device/neuron3/stats/x"), "sys/devices/virtual/neuron_device/neuron3");
  EXPECT_EQ(part_of("sys/devices/pci0/0000:00:1e.0/infiniband/rdmap0/ports/1/state"),
            "sys/devices/pci0/0000:00:1e.0/infiniband/rdmap0");
  EXPECT_EQ(part_of("sys/class/neuron_device/server_id_4"), "sys/class/neuron_device/server_id_4");
  EXPECT_EQ(part_of("proc/stat"), "proc/stat");
}

}  // namespace
}  // namespace neuron::gather
