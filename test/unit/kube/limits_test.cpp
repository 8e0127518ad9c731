#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "agent/kube/limits.h"
#include "agent/kube/transfer.h"

namespace neuron::kube {
namespace {

using ::testing::ElementsAre;
using namespace std::chrono_literals;

TEST(BackoffTest, DoublesUpToItsBoundByChance) {
  Backoff backoff(100ms, 1s, 1);
  for (const auto whole : {100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    const auto time = backoff.next();
    EXPECT_GE(time, whole / 2);
    EXPECT_LE(time, whole);
  }
  backoff.reset();
  EXPECT_LE(backoff.next(), 100ms);
  std::set<std::chrono::milliseconds> different;
  for (unsigned seed = 1; seed <= 20; ++seed) different.insert(Backoff(10s, 10s, seed * 100'000'000U).next());
  EXPECT_GT(different.size(), 5U);
}

TEST(WaitFor, EndsWhenStopped) {
  std::stop_source stop;
  std::jthread other([&] { stop.request_stop(); });
  const auto begin = std::chrono::steady_clock::now();
  wait_for(1min, stop.get_token());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  wait_for(1ms, {});
}

class TokenBucketTest : public ::testing::Test {
 protected:
  std::chrono::milliseconds take(std::chrono::milliseconds longest = 10s) {
    const auto wait = bucket_.take(now_, longest);
    return wait ? std::chrono::ceil<std::chrono::milliseconds>(*wait) : -1ms;
  }
  TokenBucket bucket_{10, 3};
  SteadyTime now_ = SteadyTime() + 1h;
};

TEST_F(TokenBucketTest, ABurstAndThenARow) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(take(), 0ms);
  EXPECT_EQ(take(), 100ms);
  EXPECT_EQ(take(), 200ms);
  EXPECT_EQ(take(250ms), -1ms);  // it would be 300, and takes no place
  now_ += 300ms;
  EXPECT_EQ(take(), 0ms);
  EXPECT_EQ(take(), 100ms);
  now_ += 1h;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(take(), 0ms);
  EXPECT_EQ(take(), 100ms);
}

TEST_F(TokenBucketTest, APauseHoldsEverybody) {
  bucket_.pause(now_ + 2s);
  bucket_.pause(now_ + 1s);
  EXPECT_EQ(take(1s), -1ms);
  EXPECT_EQ(take(), 2000ms);
  now_ += 2s;
  EXPECT_EQ(take(), 0ms);
}

class LineSplitterTest : public ::testing::Test {
 protected:
  LineSplitter::State take(std::string_view piece) {
    return splitter_.take(piece, [this](std::string_view line) {
      lines_.emplace_back(line);
      return line != "end";
    });
  }
  LineSplitter splitter_{8};
  std::vector<std::string> lines_;
};

TEST_F(LineSplitterTest, LinesOfAnyPieces) {
  EXPECT_EQ(take("a\nbc"), LineSplitter::State::going);
  EXPECT_THAT(lines_, ElementsAre("a"));
  take("d");
  take("\r\n\n\n12345678\nrest");
  EXPECT_THAT(lines_, ElementsAre("a", "bcd", "12345678"));
}

TEST_F(LineSplitterTest, NothingAfterItHasEnough) {
  EXPECT_EQ(take("a\nend\nb\n"), LineSplitter::State::ended);
  EXPECT_EQ(take("c\n"), LineSplitter::State::ended);
  EXPECT_THAT(lines_, ElementsAre("a", "end"));
}

TEST_F(LineSplitterTest, ALineIsBounded) {
  EXPECT_EQ(take("12345678"), LineSplitter::State::going);
  EXPECT_EQ(take("9"), LineSplitter::State::too_long);
  EXPECT_EQ(take("\n1\n"), LineSplitter::State::too_long);
  EXPECT_TRUE(lines_.empty());
  LineSplitter another(8);
  EXPECT_EQ(another.take("123456789\n", [](auto) { return true; }), LineSplitter::State::too_long);
}

}  // namespace
}  // namespace neuron::kube
