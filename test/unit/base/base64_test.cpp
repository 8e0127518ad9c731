#include "agent/base/base64.h"

#include <gtest/gtest.h>

namespace neuron {
namespace {

TEST(Base64, DecodesUntilTheFirstForeignLetter) {
  EXPECT_EQ(decode_base64("GhgKFi9kZXY="), "\x1a\x18\x0a\x16/dev");
  EXPECT_EQ(decode_base64("L2Rl*#"), "/de");
  EXPECT_EQ(decode_base64(""), "");
}

}  // namespace
}  // namespace neuron
