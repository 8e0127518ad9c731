#include "agent/base/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "agent/base/fd.h"

namespace neuron {
namespace {

using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr auto kPlenty = 20s;  // for what ends by itself

bool say(int fd, const std::string& text) {
  return write_all(fd, text, "the answer").has_value();
}

TEST(ChildProcess, SaysBothThingsApart) {
  const auto outcome = run_in_child(
      [](int output) {
        std::fputs("to stdout\n", stdout);
        std::fflush(stdout);
        return say(output, "result") ? 3 : 4;
      },
      kPlenty, 1024);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, ChildOutcome::End::exited);
  EXPECT_EQ(outcome->status, 3);
  EXPECT_EQ(outcome->output, "result");
  EXPECT_EQ(outcome->errors, "to stdout\n");
}

TEST(ChildProcess, ErrorsPastTheBoundAreDroppedAndNobodyBlocks) {
  const auto outcome = run_in_child(
      [](int output) {
        static_cast<void>(say(STDERR_FILENO, std::string(1U << 20U, 'x')));
        return say(output, std::string(1000, 'x')) ? 0 : 1;
      },
      kPlenty, 1000);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, ChildOutcome::End::exited);
  EXPECT_EQ(outcome->status, 0);
  EXPECT_THAT(outcome->output, SizeIs(1000));
  EXPECT_THAT(outcome->errors, SizeIs(1000));
}

TEST(ChildProcess, OutputPastTheBoundEndsIt) {
  const auto outcome =
      run_in_child([](int output) { return say(output, std::string(1U << 20U, 'x')) ? 0 : 1; }, kPlenty, 1000);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, ChildOutcome::End::cut);
  EXPECT_THAT(outcome->output, SizeIs(1000));
}

TEST(ChildProcess, AProgramThatDiesTellsItsSignal) {
  const auto outcome = run_program({"/bin/sh", "-c", "read line; echo said $?; kill -ABRT $$"}, kPlenty, 1000);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, ChildOutcome::End::killed);
  EXPECT_EQ(outcome->status, SIGABRT);
  EXPECT_EQ(outcome->output, "said 1\n") << "its standard input is empty";
}

// A grandchild may hold the pipes open; the child's end is what counts.
TEST(ChildProcess, GrandchildDoesNotHoldUsUp) {
  const auto outcome = run_in_child(
      [](int output) {
        if (::fork() == 0) {
          ::alarm(30);
          for (;;) ::pause();
        }
        return say(output, "done") ? 0 : 1;
      },
      kPlenty, 1000);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, ChildOutcome::End::exited);
  EXPECT_EQ(outcome->output, "done");
}

TEST(ChildProcess, WhatWasSaidBeforeTheEndOfTheBudgetIsKept) {
  const auto outcome = run_in_child(
      [](int output) {
        static_cast<void>(say(output, "half"));
        for (;;) ::pause();
        return 0;
      },
      1s, 1000);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->end, ChildOutcome::End::out_of_time);
  EXPECT_EQ(outcome->output, "half");
}

}  // namespace
}  // namespace neuron
