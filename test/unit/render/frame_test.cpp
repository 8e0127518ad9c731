#include "tools/neuron-ls/watch.h"

#include <gtest/gtest.h>

namespace neuron::ls {
namespace {

TEST(Frame, DrawsOverTheLastPictureLineByLine) {
  EXPECT_EQ(frame("status", "a\nb\n", 24), "\x1b[Hstatus\x1b[K\r\na\x1b[K\r\nb\x1b[K\x1b[J");
  EXPECT_EQ(frame("status", "", 24), "\x1b[Hstatus\x1b[K\x1b[J");
}

TEST(Frame, KeepsToTheRowsThereAre) {
  EXPECT_EQ(frame("s", "a\nb\nc\n", 4), "\x1b[Hs\x1b[K\r\na\x1b[K\r\nb\x1b[K\r\nc\x1b[K\x1b[J");
  EXPECT_EQ(frame("s", "a\nb\nc\n", 3),
            "\x1b[Hs\x1b[K\r\na\x1b[K\r\n... 2 more lines; enlarge the terminal\x1b[K\x1b[J");
  EXPECT_EQ(frame("s", "a\nb\n", 1), "\x1b[Hs\x1b[K\x1b[J");
  EXPECT_EQ(frame("s", "a\nb\n", 0), "\x1b[Hs\x1b[K\r\na\x1b[K\r\nb\x1b[K\x1b[J");
}

}  // namespace
}  // namespace neuron::ls
