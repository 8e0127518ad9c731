#include "agent/base/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
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
  std::fflush(stdout);  // the child would print what GoogleTest has buffered, with --gtest_brief, a second time
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

// All that it writes, until `end` or its end.
std::string output_until(const BackgroundProgram& program, const std::string& end) {
  std::string text;
  for (char letter = 0; text.find(end) == std::string::npos;) {
    pollfd ready{program.output.get(), POLLIN, 0};
    if (::poll(&ready, 1, 30'000) <= 0) break;
    const ssize_t got = ::read(program.output.get(), &letter, 1);
    if (got == 0 || (got < 0 && errno != EAGAIN)) break;
    if (got == 1) text += letter;
  }
  return text;
}

TEST(BackgroundProgram, RunsUntilItsObjectGoes) {
  auto program = start_program({"/bin/sh", "-c", "echo out; echo err >&2; echo $$.; exec sleep 1000"});
  ASSERT_TRUE(program) << program.error().message;
  const std::string output = output_until(*program, ".");
  EXPECT_EQ(output.substr(0, 8), "out\nerr\n");
  const auto pid = static_cast<pid_t>(std::stol(output.substr(8)));
  EXPECT_EQ(::kill(pid, 0), 0);
  program->child.reset();
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(BackgroundProgram, OneThatCannotBeRunSaysSo) {
  auto program = start_program({"/no/such/program"});
  ASSERT_TRUE(program);
  EXPECT_NE(output_until(*program, "\n").find("/no/such/program"), std::string::npos);
  EXPECT_EQ(program->child->wait(std::chrono::steady_clock::now() + kPlenty), 127);
}

}  // namespace
}  // namespace neuron
