#include "tools/neuron-gather/reading_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

namespace neuron::gather {
namespace {

using std::chrono::milliseconds;

// Long against anything that a loaded machine does between two steps.
constexpr milliseconds kBudget{1500};

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
  EXPECT_EQ(run_watched(work, kBudget), 7);
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
