#include "agent/model/device.h"

#include <gtest/gtest.h>

namespace neuron::model {
namespace {

TEST(Bdf, RoundTripsInFullForm) {
  const auto bdf = parse_bdf("0000:a0:1b.0");
  ASSERT_TRUE(bdf);
  EXPECT_EQ(bdf->bus, 0xa0);
  EXPECT_EQ(bdf->slot, 0x1b);
  EXPECT_EQ(to_string(*bdf), "0000:a0:1b.0");
  EXPECT_EQ(parse_bdf("CC:00.7"), (Bdf{0, 0xcc, 0, 7}));
}

TEST(Bdf, OrdersByBusThenSlot) {
  EXPECT_LT(*parse_bdf("0000:10:1b.0"), *parse_bdf("0000:20:00.0"));
}

TEST(Bdf, RejectsEverythingElse) {
  for (const char* bad : {"", "0000:10:1b", "0000:10:20.0", "0000:10:1b.8", "10:1b.0 ", "0000-10:1b.0", "00000:10:1b.0",
                          "0000:+1:1b.0", "zz:00.0", "0x:00.0"}) {
    EXPECT_EQ(parse_bdf(bad), std::nullopt) << bad;
  }
}

TEST(Family, IsKnownByNameAndByPciId) {
  for (const Family family :
       {Family::inferentia, Family::inferentia2, Family::trainium1, Family::trainium2, Family::trainium3}) {
    EXPECT_EQ(parse_family(to_string(family)), family);
  }
  EXPECT_EQ(parse_family("Trainium9"), std::nullopt);
  EXPECT_EQ(family_of_pci_id(0x7064), Family::inferentia);
  EXPECT_EQ(family_of_pci_id(0x7164), Family::trainium1);
  EXPECT_EQ(family_of_pci_id(0x7264), Family::inferentia2);
  EXPECT_EQ(family_of_pci_id(0x7364), Family::trainium2);
  EXPECT_EQ(family_of_pci_id(0x7565), Family::trainium3);
  EXPECT_EQ(family_of_pci_id(0xefa0), std::nullopt);
}

}  // namespace
}  // namespace neuron::model
