#include "tools/render/text.h"

#include <gtest/gtest.h>

namespace neuron::render {
namespace {

TEST(DisplayWidth, CountsCodePoints) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("neuron"), 6U);
  EXPECT_EQ(display_width("◄––►"), 4U);
}

TEST(Shorten, KeepsWhatFits) {
  EXPECT_EQ(shorten("", 3), "");
  EXPECT_EQ(shorten(std::string(40, 'x'), 40), std::string(40, 'x'));
  EXPECT_EQ(shorten("ééé", 3), "ééé");
}

TEST(Shorten, CutsAtCodePointsAndEndsInDots) {
  EXPECT_EQ(shorten(std::string(41, 'x'), 40), std::string(37, 'x') + "...");
  EXPECT_EQ(shorten("ééééé", 4), "é...");
}

}  // namespace
}  // namespace neuron::render
