#include "agent/base/workers.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <future>
#include <string>

namespace neuron {
namespace {

using Reader = BackgroundReader<std::string, int>;

std::optional<std::string> wait_for(Reader& reader) {
  pollfd fd{reader.ready_fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&fd, 1, 20'000), 1);
  return reader.take();
}

TEST(BackgroundReader, OneAnswerPerRequest) {
  int calls = 0;
  auto reader = Reader::open([&calls](int number) {
    ++calls;
    return std::to_string(number);
  });
  ASSERT_TRUE(reader);
  EXPECT_FALSE((*reader)->take());
  (*reader)->request(7);
  EXPECT_EQ(wait_for(**reader), "7");
  EXPECT_FALSE((*reader)->is_busy());
  EXPECT_FALSE((*reader)->take()) << "once";
  (*reader)->request(8);
  EXPECT_EQ(wait_for(**reader), "8");
  EXPECT_EQ(calls, 2);
}

struct Gates {
  std::promise<void> began, open, ended;
};

TEST(BackgroundReader, AHungReadHoldsUpNobody) {
  auto gates = std::make_shared<Gates>();
  auto reader = Reader::open([gates](int) {
    gates->began.set_value();
    gates->open.get_future().wait();
    gates->ended.set_value();
    return "";
  });
  ASSERT_TRUE(reader);
  (*reader)->request(1);
  gates->began.get_future().wait();
  EXPECT_TRUE((*reader)->is_busy());
  (*reader)->request(2);  // does nothing
  EXPECT_FALSE((*reader)->take());
  reader->reset();  // returns although the thread hangs
  gates->open.set_value();
  gates->ended.get_future().wait();
}

}  // namespace
}  // namespace neuron
