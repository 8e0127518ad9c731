#include "agent/base/fd.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace neuron {
namespace {

TEST(DescriptorLimit, IsRaisedToTheHardOneAndNeverLowered) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit low{100, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const auto most = std::min<std::uint64_t>(usual.rlim_max, kMostDescriptors);
  const DescriptorLimit raised = raise_descriptor_limit();
  EXPECT_EQ(raised.before, 100U);
  EXPECT_EQ(raised.now, most);
  rlimit now{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &now), 0);
  EXPECT_EQ(now.rlim_cur, most);
  EXPECT_EQ(raise_descriptor_limit().now, most);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
}

}  // namespace
}  // namespace neuron
