#include "agent/base/result.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace neuron {
namespace {

TEST(Error, ErrnoBecomesTheCodeACallerDecidesOn) {
  EXPECT_EQ(error_from_errno(ENOENT, "x").code, ErrorCode::not_found);
  EXPECT_EQ(error_from_errno(ENODEV, "x").code, ErrorCode::not_found);
  EXPECT_EQ(error_from_errno(EACCES, "x").code, ErrorCode::permission_denied);
  EXPECT_EQ(error_from_errno(EBUSY, "x").code, ErrorCode::unavailable);
  EXPECT_EQ(error_from_errno(EISDIR, "x").code, ErrorCode::data_corrupt);
  EXPECT_EQ(error_from_errno(EIO, "x").code, ErrorCode::internal);
  EXPECT_EQ(error_from_errno(EIO, "x").os_errno, EIO);
  EXPECT_EQ(error_from_errno(ENOENT, "sys/x").message, "sys/x: No such file or directory");
}

TEST(Error, ContextGoesInFront) {
  EXPECT_EQ(make_error(ErrorCode::internal, "b").with_context("a").message, "a: b");
}

Result<int> half(int value) {
  if (value % 2 != 0) return fail(ErrorCode::invalid_argument, "odd");
  return value / 2;
}

Result<int> quarter(int value) {
  TRY_ASSIGN(const int first, half(value));
  TRY_ASSIGN(const int second, half(first));
  return second;
}

TEST(Result, TryAssignGivesTheValueOrReturnsTheError) {
  EXPECT_EQ(quarter(8), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().message, "odd");
}

TEST(Error, AReasonIsKeptAllTheWayUp) {
  const auto deep = []() -> Result<int> {
    return fail(make_error(ErrorCode::unavailable, "busy").with_reason("in_use"));
  };
  const auto above = [&]() -> Result<int> {
    TRY_ASSIGN(const int value, deep());
    return value;
  };
  EXPECT_EQ(make_error(ErrorCode::unavailable, "busy").reason, "");
  const Error error = Error(above().error()).with_context("core 3");
  EXPECT_EQ(error.reason, "in_use");
  EXPECT_EQ(Error(error).with_reason("other").reason, "in_use") << "the caller that knows less does not replace it";
}

TEST(Error, NoMessageReachesATerminalRaw) {
  const std::string name = "sys/\x1b]0;owned\x07\u202e\n";
  const std::string shown = "sys/\\x1b]0;owned\\x07\\xe2\\x80\\xae\\x0a";
  EXPECT_EQ(error_from_errno(ENOENT, name).message, shown + ": No such file or directory");
  EXPECT_EQ(make_error(ErrorCode::internal, name).message, shown);
  EXPECT_EQ(make_error(ErrorCode::internal, "why").with_context(name).message, shown + ": why");
}

}  // namespace
}  // namespace neuron
