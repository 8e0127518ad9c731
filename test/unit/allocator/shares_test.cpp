#include "agent/allocator/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>

namespace neuron::allocator {
namespace {

using testing::ElementsAre;
using testing::Optional;

// Bits of a text, the first core first: "1101".
CoreMask cores(std::string_view text) {
  CoreMask mask = 0;
  for (std::size_t i = 0; i < text.size(); ++i) mask |= text[i] == '1' ? CoreMask{1} << i : 0;
  return mask;
}

std::optional<CoreMask> choose_one(std::string_view free, int count, std::string_view beside = "", int granule = 1) {
  return choose_shares(static_cast<int>(free.size()), {{3, count, cores(free), cores(beside), granule}}, {}).front();
}

TEST(Shares, OneDeviceIsFilledWithoutCuttingWhatStays) {
  EXPECT_THAT(choose_one("1111", 1), Optional(cores("1000")));
  EXPECT_THAT(choose_one("0111", 1), Optional(cores("0100"))) << "the other two stay an aligned pair";
  EXPECT_THAT(choose_one("0111", 2), Optional(cores("0011")));
  EXPECT_THAT(choose_one("1011", 1), Optional(cores("1000"))) << "the gap first";
  EXPECT_THAT(choose_one("11110111", 3), Optional(cores("00000111")));
  EXPECT_THAT(choose_one("1111", 4), Optional(cores("1111")));
  EXPECT_THAT(choose_one("1010", 2), Optional(cores("1010"))) << "no run is left";
  EXPECT_EQ(choose_one("1010", 3), std::nullopt);
}

TEST(Shares, TheCoresOfAContainerLieTogether) {
  EXPECT_THAT(choose_one("1011", 1, "0100"), Optional(cores("1000")));
  EXPECT_THAT(choose_one("1101", 1, "0010"), Optional(cores("0001")));
  EXPECT_THAT(choose_one("11111111", 4, "", 2), Optional(cores("11110000")));
  EXPECT_THAT(choose_one("01111111", 2, "", 2), Optional(cores("00000011")));
  EXPECT_EQ(choose_one("0101", 2, "", 2), std::nullopt) << "no aligned pair";
}

TEST(Shares, OverDevicesTheyAreOneRangeAsTheRuntimeCounts) {
  const CoreMask all = cores("1111");
  EXPECT_THAT(choose_shares(4, {{2, 1, all, 0, 1}, {5, 2, all, 0, 1}}, {}),
              ElementsAre(Optional(cores("0001")), Optional(cores("1100"))));
  EXPECT_THAT(choose_shares(4, {{2, 1, all, 0, 1}, {3, 4, all, 0, 1}, {5, 1, all, 0, 1}}, {}),
              ElementsAre(Optional(cores("0001")), Optional(all), Optional(cores("1000"))));
  EXPECT_THAT(choose_shares(4, {{2, 1, all, 0, 1}}, {1}), ElementsAre(Optional(cores("1000"))));
  EXPECT_THAT(choose_shares(4, {{2, 1, all, 0, 1}}, {3}), ElementsAre(Optional(cores("0001"))));
  // The last core of device 2 is held: no range, so each device by itself.
  EXPECT_THAT(choose_shares(4, {{2, 1, cores("1110"), 0, 1}, {5, 1, all, 0, 1}}, {}),
              ElementsAre(Optional(cores("0010")), Optional(cores("1000"))));
}

// Whatever comes and goes: what is chosen is free, as many as wanted, and there is a choice where enough are free.
TEST(Shares, ARandomDeviceIsNeverOversold) {
  std::mt19937 random(1);
  for (const int per_device : {1, 2, 4, 8}) {
    CoreMask held = 0;
    std::vector<CoreMask> claims;
    for (int step = 0; step < 5000; ++step) {
      if (!claims.empty() && random() % 2 == 0) {
        const std::size_t which = random() % claims.size();
        held &= ~claims[which];
        claims.erase(claims.begin() + static_cast<std::ptrdiff_t>(which));
        continue;
      }
      const CoreMask all = (CoreMask{1} << static_cast<unsigned>(per_device)) - 1;
      const int count = 1 + static_cast<int>(random() % static_cast<unsigned>(per_device));
      const auto chosen = choose_shares(per_device, {{0, count, all & ~held, 0, 1}}, {}).front();
      ASSERT_EQ(chosen.has_value(), std::popcount(all & ~held) >= count);
      if (!chosen) continue;
      ASSERT_EQ(*chosen & (held | ~all), 0U);
      ASSERT_EQ(std::popcount(*chosen), count);
      held |= *chosen;
      claims.push_back(*chosen);
    }
  }
}

}  // namespace
}  // namespace neuron::allocator
