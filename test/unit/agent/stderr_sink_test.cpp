#include "plugin/kubelet/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <memory>
#include <string>

#include "agent/base/fd.h"

namespace neuron::plugin {
namespace {

using ::testing::EndsWith;

class StderrSinkTest : public ::testing::Test {
 protected:
  StderrSinkTest() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) std::abort();
    reading_ = Fd(ends[0]);
    writing_ = Fd(ends[1]);
    log_ = std::make_unique<spdlog::logger>("test", std::make_shared<StderrSink>(writing_.get()));
    log_->set_pattern("%l %v");
  }
  std::string take() {
    std::string text(1U << 20U, '\0');
    const ssize_t count = ::read(reading_.get(), text.data(), text.size());
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return text;
  }
  void fill() {
    const std::string page(PIPE_BUF, '.');
    while (::write(writing_.get(), page.data(), page.size()) > 0) {
    }
  }

  Fd reading_;
  Fd writing_;
  std::unique_ptr<spdlog::logger> log_;
};

TEST_F(StderrSinkTest, OneLineEach) {
  log_->info("one");
  log_->warn("two");
  EXPECT_EQ(take(), "info one\nwarning two\n");
}

TEST_F(StderrSinkTest, NothingIsRaw) {
  log_->info("name=\x1b[31m\n\u202e");
  EXPECT_EQ(take(), "info name=\\x1b[31m\\x0a\\xe2\\x80\\xae\n");
}

TEST_F(StderrSinkTest, ALineIsOneWrite) {
  log_->info(std::string(20000, '\x1b'));
  const std::string line = take();
  EXPECT_LE(line.size(), static_cast<std::size_t>(PIPE_BUF));
  EXPECT_THAT(line, EndsWith("...\n"));
}

TEST_F(StderrSinkTest, WhatNobodyReadsIsCounted) {
  fill();
  const auto begin = std::chrono::steady_clock::now();
  for (int line = 0; line < 100; ++line) log_->info("lost");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "only the first one waits";
  static_cast<void>(take());
  log_->info("seen");
  log_->info("seen");
  EXPECT_EQ(take(), "warning 100 log lines lost: standard error was not read\ninfo seen\ninfo seen\n");
}

}  // namespace
}  // namespace neuron::plugin
