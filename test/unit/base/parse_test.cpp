#include "agent/base/parse.h"

#include <gtest/gtest.h>

namespace neuron {
namespace {

TEST(Parse, NumbersTakeTheWholeTextOrNothing) {
  EXPECT_EQ(parse_u64(" 42\n"), 42U);
  EXPECT_EQ(parse_u64("18446744073709551615"), 18446744073709551615ULL);
  for (const char* bad : {"", " ", "-1", "+1", "1x", "0x10", "18446744073709551616", "1 2", "1.5"}) {
    EXPECT_EQ(parse_u64(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_i64("-1\n"), -1);
  EXPECT_EQ(parse_int("7", 0, 7), 7);
  EXPECT_EQ(parse_int("8", 0, 7), std::nullopt);
  EXPECT_EQ(parse_hex("0x1d0f\n"), 0x1d0fU);
  EXPECT_EQ(parse_hex("efa1"), 0xefa1U);
  EXPECT_EQ(parse_hex("0x"), std::nullopt);
  EXPECT_EQ(parse_hex("123456789"), std::nullopt);
}

TEST(Parse, SplitKeepsEmptyPartsAndTrims) {
  EXPECT_EQ(split("a, b,,c", ','), (std::vector<std::string_view>{"a", "b", "", "c"}));
  EXPECT_TRUE(split("", ',').empty());
}

TEST(Parse, IntListsRoundTrip) {
  for (const char* text : {"", "0", "0-3", "0-31,64-95", "1,3,5", "0-1,8,10-11"}) {
    const auto values = parse_int_list(text, 4095);
    ASSERT_TRUE(values) << text;
    EXPECT_EQ(format_int_list(*values), text);
  }
  EXPECT_EQ(*parse_int_list("5,1-2,2\n", 9), (std::vector<int>{1, 2, 5}));
}

TEST(Parse, BadIntListsSayWhatIsWrong) {
  for (const char* bad : {"3-1", "a", "1,", "0-4096", "-", "1--2", "0-", "99999999999"}) {
    const auto values = parse_int_list(bad, 4095);
    ASSERT_FALSE(values) << bad;
    EXPECT_EQ(values.error().code, ErrorCode::data_corrupt);
    EXPECT_NE(values.error().message.find(bad), std::string::npos);
  }
}

TEST(Parse, DurationsNeedAUnitAndABound) {
  using std::chrono::milliseconds;
  EXPECT_EQ(*parse_duration("200ms"), milliseconds(200));
  EXPECT_EQ(*parse_duration("5s"), milliseconds(5000));
  EXPECT_EQ(*parse_duration("1m"), milliseconds(60000));
  for (const char* bad : {"", "5", "s", "0s", "-1s", "1.5s", "5 s", "2000m", "99999999999999999999s"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
}

TEST(Parse, CountedNounsAreSingularForOneOnly) {
  EXPECT_EQ(counted(1, "device"), "1 device");
  EXPECT_EQ(counted(0, "EFA interface"), "0 EFA interfaces");
  EXPECT_EQ(counted(std::size_t{2}, "switch"), "2 switches");
  EXPECT_EQ(counted(3U, "process"), "3 processes");
}

TEST(Parse, NamesOfKubernetesObjects) {
  for (const char* label : {"a", "0", "neuron-device-3"}) EXPECT_TRUE(is_dns_label(label)) << label;
  for (const char* bad : {"", "-a", "a-", "a.b", "A", "a_b", "a b"}) EXPECT_FALSE(is_dns_label(bad)) << bad;
  EXPECT_TRUE(is_dns_label(std::string(63, 'a')));
  EXPECT_FALSE(is_dns_label(std::string(64, 'a')));
  for (const char* name : {"a", "ip-10-0-0-1.ec2.internal"}) EXPECT_TRUE(is_dns_subdomain(name)) << name;
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "a.-b", "a. b"}) EXPECT_FALSE(is_dns_subdomain(bad)) << bad;
  EXPECT_TRUE(is_dns_subdomain(std::string(253, 'a')));
  EXPECT_FALSE(is_dns_subdomain(std::string(254, 'a')));
  for (const char* name : {"a", "A_1.b-c"}) EXPECT_TRUE(is_qualified_part(name)) << name;
  for (const char* bad : {"", "-a", "a.", "a/b", "a b"}) EXPECT_FALSE(is_qualified_part(bad)) << bad;
  EXPECT_FALSE(is_qualified_part(std::string(64, 'a')));
  EXPECT_TRUE(is_qualified_part(std::string(64, 'a'), 253));
}

TEST(Parse, PrintableHidesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("plain ü"), "plain ü");
  EXPECT_EQ(printable("\x1b[31m\n"), "\\x1b[31m\\x0a");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "C1 control sequence introducer";
  EXPECT_EQ(printable("\xe0\x80\xaf"), "\\xe0\\x80\\xaf") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(printable(std::string(500, 'a'), 10), "aaaaaaaaaa...");
}

TEST(Parse, PrintableShowsWhatReordersOrIsNotSeen) {
  EXPECT_EQ(printable("\u200b\u200f"), "\\xe2\\x80\\x8b\\xe2\\x80\\x8f");
  EXPECT_EQ(printable("\u2028\u202e"), "\\xe2\\x80\\xa8\\xe2\\x80\\xae");
  EXPECT_EQ(printable("\u2066\u2069"), "\\xe2\\x81\\xa6\\xe2\\x81\\xa9");
  EXPECT_EQ(printable("\ufeff"), "\\xef\\xbb\\xbf");
  EXPECT_EQ(printable("\U000e0041"), "\\xf3\\xa0\\x81\\x81");
  EXPECT_EQ(printable("\u200a\u2010\u2027\u202f\ufefe 中 \U0001f600"), "\u200a\u2010\u2027\u202f\ufefe 中 \U0001f600");
}

TEST(Parse, WhatIsPrintableStaysSo) {
  const std::string shown = printable("\x1b]0;title\x07\u202e\xff");
  EXPECT_EQ(printable(shown), shown);
  EXPECT_EQ(printable_line(shown, 100), shown);
  EXPECT_EQ(printable_line("a\x1b", 100), "a\\x1b");
  EXPECT_EQ(printable_line(std::string(500, 'a'), 10), "aaaaaaaaaa...");
}

}  // namespace
}  // namespace neuron
