#include "plugin/device/kubelet_port.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <string>
#include <thread>

namespace neuron::plugin {
namespace {

bool readable(const EventQueue& queue, int timeout_ms) {
  pollfd wait{queue.fd(), POLLIN, 0};
  return ::poll(&wait, 1, timeout_ms) == 1;
}

TEST(EventQueue, WhatWasPostedIsTakenOnceAndInOrder) {
  const auto queue = *EventQueue::open();
  EXPECT_FALSE(readable(*queue, 0));
  queue->post(SnapshotChanged{});
  queue->post(StreamOpened{});
  EXPECT_TRUE(readable(*queue, 0));
  const auto events = queue->take();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<SnapshotChanged>(events[0]));
  EXPECT_TRUE(std::holds_alternative<StreamOpened>(events[1]));
  EXPECT_FALSE(readable(*queue, 0));
  EXPECT_TRUE(queue->take().empty());
}

TEST(EventQueue, PostsOfManyThreadsAllArriveEachThreadsInItsOrder) {
  constexpr std::size_t kThreads = 4;
  constexpr int kEach = 500;
  const auto queue = *EventQueue::open();
  std::array<std::thread, kThreads> posting;
  for (std::size_t i = 0; i < kThreads; ++i) {
    posting[i] = std::thread([&queue, i] {
      for (int n = 0; n < kEach; ++n) {
        queue->post(RegisterDone{static_cast<model::Resource>(i % 2), std::to_string(i) + " " + std::to_string(n), {}});
      }
    });
  }
  std::array<int, kThreads> next{};
  std::size_t taken = 0;
  while (taken < kThreads * kEach && readable(*queue, 10'000)) {
    for (const Event& event : queue->take()) {
      const auto& done = std::get<RegisterDone>(event);
      const std::size_t from = std::stoul(done.endpoint);
      EXPECT_EQ(done.endpoint, std::to_string(from) + " " + std::to_string(next.at(from)++));
      ++taken;
    }
  }
  for (std::thread& thread : posting) thread.join();
  EXPECT_EQ(taken, kThreads * kEach);
}

}  // namespace
}  // namespace neuron::plugin
