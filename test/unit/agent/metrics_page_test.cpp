#include "agent/metrics/endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "test/fakes/fake_clock.h"

namespace neuron::metrics {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr const char* kOpenMetrics = "application/openmetrics-text;version=1.0.0";

class MetricsPageTest : public ::testing::Test {
 protected:
  fakes::FakeClock clock_;
  int gathered_ = 0;
  std::uint64_t scan_ = 1;
  MetricsPage page_{{[this] {
                       ++gathered_;
                       metrics::MetricsInput input;
                       input.agent.version = "1.2.3";
                       return input;
                     },
                     [this] { return scan_; }},
                    clock_};
};

TEST_F(MetricsPageTest, ClientsOfOneSecondShareTheText) {
  const auto first = page_.answer("");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.content_type, metrics::content_type(metrics::TextFormat::prometheus));
  ASSERT_NE(first.shared, nullptr);
  clock_.advance(KeptText::kGoodFor - milliseconds(1));
  EXPECT_EQ(page_.answer("*/*").shared, first.shared);
  EXPECT_EQ(gathered_, 1);
  clock_.advance(milliseconds(1));
  EXPECT_NE(page_.answer("").shared, first.shared);
  EXPECT_EQ(gathered_, 2);
}

TEST_F(MetricsPageTest, AScanMakesItAnew) {
  static_cast<void>(page_.answer(""));
  ++scan_;
  static_cast<void>(page_.answer(""));
  static_cast<void>(page_.answer(""));
  EXPECT_EQ(gathered_, 2);
}

TEST_F(MetricsPageTest, IsQuietOnceAfterEachBurst) {
  EXPECT_FALSE(page_.take_quiet()) << "nobody has asked";
  static_cast<void>(page_.answer(""));
  EXPECT_FALSE(page_.take_quiet());
  clock_.advance(KeptText::kGoodFor);
  EXPECT_TRUE(page_.take_quiet());
  EXPECT_FALSE(page_.take_quiet());
}

TEST_F(MetricsPageTest, WhoAsksWhetherItIsQuietDoesNotWaitForAText) {
  std::future<bool> asked;
  std::future_status status{};
  MetricsPage page{{[&] {
                      asked = std::async(std::launch::async, [&] { return page.take_quiet(); });
                      status = asked.wait_for(std::chrono::seconds(5));
                      return metrics::MetricsInput{};
                    },
                    [] { return std::uint64_t{1}; }},
                   clock_};
  static_cast<void>(page.answer(""));
  EXPECT_EQ(status, std::future_status::ready);
  EXPECT_FALSE(asked.get());
}

TEST_F(MetricsPageTest, TheNodesTextIsSharedLikewise) {
  int made = 0;
  NodePage page{{[&] { return std::optional("text " + std::to_string(++made)); }, [this] { return scan_; }}, clock_};
  const auto first = page.answer();
  EXPECT_EQ(*first.shared, "text 1");
  EXPECT_EQ(page.answer().shared, first.shared);
  ++scan_;
  EXPECT_EQ(*page.answer().shared, "text 2");
  clock_.advance(KeptText::kGoodFor);
  EXPECT_EQ(*page.answer().shared, "text 3") << "holdings change between scans";
  EXPECT_FALSE(page.take_quiet());
  clock_.advance(KeptText::kGoodFor);
  EXPECT_TRUE(page.take_quiet());
}

TEST_F(MetricsPageTest, OpenMetricsIsAnotherText) {
  const auto plain = page_.answer("");
  const auto open = page_.answer(kOpenMetrics);
  EXPECT_EQ(open.content_type, metrics::content_type(metrics::TextFormat::openmetrics));
  EXPECT_NE(open.shared, plain.shared);
  EXPECT_EQ(page_.answer("").shared, plain.shared) << "and both are kept";
  EXPECT_EQ(page_.answer(kOpenMetrics).shared, open.shared);
}

}  // namespace
}  // namespace neuron::metrics
