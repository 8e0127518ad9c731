#include "tools/render/text.h"

#include <gtest/gtest.h>

namespace neuron::render {
namespace {

using Headers = std::vector<TextTable::Header>;

TEST(TextTable, CentresHeadersWithOddSlackToTheRightAndAlignsCellsLeft) {
  TextTable table(Headers{{"NEURON", "CORES"}, {"PID", ""}});
  table.add_group({{"8", "12345678"}});
  EXPECT_EQ(table.to_string(),
            "+--------+----------+\n"
            "| NEURON |   PID    |\n"
            "| CORES  |          |\n"
            "+--------+----------+\n"
            "| 8      | 12345678 |\n"
            "+--------+----------+\n");
}

TEST(TextTable, RulesFollowEveryGroupOnlyWhenOneHasSeveralRows) {
  TextTable table(Headers{{"A", ""}});
  table.add_group({{"1"}});
  table.add_group({{"2"}});
  EXPECT_EQ(table.to_string(), "+---+\n| A |\n|   |\n+---+\n| 1 |\n| 2 |\n+---+\n");
  table.add_group({{"3"}, {"4"}});
  EXPECT_EQ(table.to_string(), "+---+\n| A |\n|   |\n+---+\n| 1 |\n+---+\n| 2 |\n+---+\n| 3 |\n| 4 |\n+---+\n");
}

TEST(TextTable, ForgivesShortAndLongRowsAndEmptyGroups) {
  TextTable table(Headers{{"A", ""}, {"B", ""}});
  table.add_group({});
  table.add_group({{"1"}});
  table.add_group({{"2", "3", "4"}});
  EXPECT_EQ(table.to_string(), "+---+---+\n| A | B |\n|   |   |\n+---+---+\n| 1 |   |\n| 2 | 3 |\n+---+---+\n");
}

TEST(TextTable, ColourChangesNoWidth) {
  TextTable table(Headers{{"A", ""}, {"STATE", ""}});
  table.paint_column(1, [](std::string_view text) { return text == "bad" ? Role::bad : Role::plain; });
  table.paint_column(7, [](std::string_view) { return Role::bad; });
  table.add_group({{"1", "bad"}, {"2", "fine"}, {"3", "bad"}});
  const std::string red = painted(ColourDepth::ansi16, Role::bad, "bad");
  EXPECT_NE(red, "bad");
  EXPECT_NE(table.to_string(ColourDepth::ansi16).find("| 1 | " + red + "   |\n| 2 | fine  |\n"), std::string::npos);
  EXPECT_EQ(table.to_string().find('\x1b'), std::string::npos);
}

TEST(TextTable, WithoutRowsIsAHeader) {
  EXPECT_EQ(TextTable(Headers{{"A", "B"}}).to_string(), "+---+\n| A |\n| B |\n+---+\n");
}

TEST(TextTable, MeasuresCellsInCodePoints) {
  TextTable table(Headers{{"A", ""}});
  table.add_group({{"é"}});
  EXPECT_EQ(table.to_string(), "+---+\n| A |\n|   |\n+---+\n| é |\n+---+\n");
}

}  // namespace
}  // namespace neuron::render
