#include "agent/base/fd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron {
namespace {

TEST(ListenAddress, OneAddressOrAll) {
  EXPECT_EQ(parse_listen_address(":8000"), (ListenAddress{"", 8000}));
  EXPECT_EQ(parse_listen_address("127.0.0.1:8000"), (ListenAddress{"127.0.0.1", 8000}));
  EXPECT_EQ(parse_listen_address("0.0.0.0:1"), (ListenAddress{"0.0.0.0", 1}));
  EXPECT_EQ(parse_listen_address("[::1]:65535"), (ListenAddress{"::1", 65535}));
  EXPECT_EQ(parse_listen_address("[::]:0"), (ListenAddress{"::", 0}));
}

TEST(ListenAddress, WhatIsNoneNamesTheForm) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text : {""sv,
                                      ":"sv,
                                      "8000"sv,
                                      "127.0.0.1"sv,
                                      "127.0.0.1:"sv,
                                      ":65536"sv,
                                      ":-1"sv,
                                      ": 80"sv,
                                      ":+80"sv,
                                      ":80 "sv,
                                      ":0x50"sv,
                                      "localhost:80"sv,
                                      "::1:8000"sv,
                                      "[::1:8000"sv,
                                      "::1]:8000"sv,
                                      "[]:8000"sv,
                                      "[127.0.0.1]:80"sv,
                                      "127.1:80"sv,
                                      "[fe80::1%eth0]:80"sv,
                                      "127.0.0.1\0:80"sv,
                                      "http://127.0.0.1:80"sv,
                                      ":99999999999999"sv}) {
    const auto parsed = parse_listen_address(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(parsed.error().message, testing::HasSubstr("use HOST:PORT")) << text;
  }
}

TEST(ListenAddress, IsWrittenAsItIsRead) {
  for (const char* text : {":8000", "127.0.0.1:8000", "[::1]:8000", "[fd00::7]:0"}) {
    EXPECT_EQ(to_string(*parse_listen_address(text)), text);
  }
}

}  // namespace
}  // namespace neuron
