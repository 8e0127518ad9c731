#include "agent/base/parse.h"

#include <gtest/gtest.h>

namespace neuron {
namespace {

TEST(Base64, DecodesUntilTheFirstForeignLetter) {
  EXPECT_EQ(decode_base64("GhgKFi9kZXY="), "\x1a\x18\x0a\x16/dev");
  EXPECT_EQ(decode_base64("L2Rl*#"), "/de");
  EXPECT_EQ(decode_base64(""), "");
}

TEST(Base64, GivesBackWhatItWrote) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foo"), "Zm9v");
  EXPECT_EQ(encode_base64("\xfb\xff"), "+/8=");
  for (std::size_t size = 0; size < 40; ++size) {
    std::string bytes;
    for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 37 + size);
    EXPECT_EQ(decode_base64(encode_base64(bytes)), bytes);
  }
}

}  // namespace
}  // namespace neuron
