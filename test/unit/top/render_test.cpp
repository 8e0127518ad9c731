// Style, canvas, bar, sparkline and numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tools/render/canvas.h"
#include "tools/render/style.h"
#include "tools/screen/table.h"

namespace neuron::render {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TerminalFacts terminal(std::string term) {
  TerminalFacts facts;
  facts.is_terminal = true;
  facts.term = std::move(term);
  facts.codeset = "UTF-8";
  return facts;
}

TEST(Style, Colours) {
  EXPECT_EQ(choose_style(terminal("xterm-256color")).colour, ColourDepth::ansi256);
  EXPECT_EQ(choose_style(terminal("xterm")).colour, ColourDepth::ansi16);
  EXPECT_EQ(choose_style(terminal("dumb")).colour, ColourDepth::none);
  EXPECT_EQ(choose_style(terminal("")).colour, ColourDepth::none);
  EXPECT_EQ(choose_style(terminal("vt100")).colour, ColourDepth::none);
  TerminalFacts facts = terminal("xterm");
  facts.colorterm = "truecolor";
  EXPECT_EQ(choose_style(facts).colour, ColourDepth::ansi256);
  facts.no_color = true;
  EXPECT_EQ(choose_style(facts).colour, ColourDepth::none);
  facts = terminal("xterm-256color");
  facts.is_terminal = false;
  EXPECT_EQ(choose_style(facts).colour, ColourDepth::none) << "never in pipes";
}

TEST(Style, Charset) {
  EXPECT_EQ(choose_style(terminal("xterm")).charset, Charset::utf8);
  EXPECT_EQ(choose_style(terminal("linux")).charset, Charset::ascii);
  TerminalFacts facts = terminal("xterm");
  facts.codeset = "ANSI_X3.4-1968";
  EXPECT_EQ(choose_style(facts).charset, Charset::ascii);
  facts.codeset = "utf8";
  facts.is_terminal = false;
  facts.term = "";
  EXPECT_EQ(choose_style(facts).charset, Charset::utf8);
}

TEST(Style, EveryRoleHasColoursOfItsPalette) {
  for (int i = 0; i < kRoles; ++i) {
    const Paint sixteen = paint_of(ColourDepth::ansi16, static_cast<Role>(i));
    EXPECT_LT(sixteen.foreground.value_or(0), 8);
    EXPECT_LT(sixteen.background.value_or(0), 8);
    const Paint none = paint_of(ColourDepth::none, static_cast<Role>(i));
    EXPECT_FALSE(none.foreground || none.background);
    EXPECT_EQ(paint_begin(ColourDepth::none, static_cast<Role>(i)), "");
  }
  EXPECT_EQ(painted(ColourDepth::ansi16, Role::bad, "x"), "\x1b[0;1;31mx\x1b[0m");
  EXPECT_EQ(painted(ColourDepth::ansi16, Role::plain, "x"), "x");
  EXPECT_TRUE(paint_of(ColourDepth::none, Role::cursor).reverse);
}

TEST(Canvas, ClipsOnEverySide) {
  Canvas canvas(2, 5);
  canvas.put(-1, 0, "above");
  canvas.put(2, 0, "below");
  canvas.put(0, -2, "abcdefghijk");
  canvas.put(1, 3, "xyz");
  canvas.paint(7, -3, 99, Role::bad);
  canvas.paint(0, -3, 99, Role::bad);
  EXPECT_EQ(canvas.to_text(), "cdefg\n   xy\n");
  EXPECT_EQ(canvas.at(0, 4).role, Role::bad);
  EXPECT_EQ(Canvas(-1, -1).to_text(), "");
}

TEST(Canvas, ForeignTextIsOneCellPerCharacter) {
  Canvas canvas(1, 12);
  canvas.put(0, 0, "\x1b[2J\xff\xc3(\xe4\xb8\xad\xc3\xa9\xf0\x9f\x98\x80|");
  EXPECT_EQ(canvas.to_text(),
            "?[2J?"
            "?(?\xc3\xa9?|\n");
  EXPECT_EQ(cells_of("e\xcc\x81", Charset::utf8), U"e?");
  EXPECT_EQ(cells_of("\xc3\xa9", Charset::ascii), U"?");
  EXPECT_EQ(cells_of("\xe2\x82", Charset::utf8).size(), 2U) << "cut in the middle";
}

TEST(Canvas, ColoursAreRuns) {
  Canvas canvas(2, 6);
  canvas.put(0, 0, "ok", Role::good);
  canvas.put(0, 3, "no", Role::bad);
  EXPECT_EQ(canvas.to_text(ColourDepth::ansi16), "\x1b[0;32mok\x1b[0m \x1b[0;1;31mno\x1b[0m\n");
}

std::string bar(double fraction, int width, Charset charset = Charset::utf8) {
  Canvas canvas(1, width, charset);
  draw_bar(canvas, 0, 0, width, {{fraction, Role::good}});
  return canvas.to_text();
}

TEST(Bar, Lengths) {
  EXPECT_EQ(bar(0, 4), "····\n");
  EXPECT_EQ(bar(1, 4), "████\n");
  EXPECT_EQ(bar(7, 4), "████\n");
  EXPECT_EQ(bar(-3, 4), "····\n");
  EXPECT_EQ(bar(std::numeric_limits<double>::quiet_NaN(), 4), "····\n");
  EXPECT_EQ(bar(0.5, 4), "██··\n");
  EXPECT_EQ(bar(0.0001, 4), "▏···\n") << "something is not nothing";
  EXPECT_EQ(bar(0.5, 4, Charset::ascii), "||..\n");
  EXPECT_EQ(bar(0.5, 0), "");
}

TEST(Bar, PartsFollowOneAnother) {
  Canvas canvas(1, 10, Charset::ascii);
  draw_bar(canvas, 0, 0, 10, {{0.3, Role::good}, {0.2, Role::system}, {0.9, Role::bad}});
  EXPECT_EQ(canvas.to_text(), "||||||||||\n");
  EXPECT_EQ(canvas.at(0, 2).role, Role::good);
  EXPECT_EQ(canvas.at(0, 3).role, Role::system);
  EXPECT_EQ(canvas.at(0, 5).role, Role::bad);
}

TEST(Sparkline, HeightsAndHoles) {
  const std::vector<std::optional<double>> values = {0, 50, std::nullopt, 100};
  EXPECT_EQ(sparkline(values, 6, 100, Charset::utf8), "  ▁▄ █");
  EXPECT_EQ(sparkline(values, 2, 100, Charset::utf8), " █");
  EXPECT_EQ(sparkline(values, 4, 100, Charset::ascii), "04 9");
  EXPECT_EQ(sparkline({}, 3, 0, Charset::utf8), "   ");
  EXPECT_EQ(level(std::nullopt, 100, Charset::utf8), "?");
  EXPECT_EQ(level(1000, 100, Charset::ascii), "9");
  EXPECT_EQ(level(std::numeric_limits<double>::quiet_NaN(), 100, Charset::ascii), "?");
}

TEST(Format, Numbers) {
  using namespace screen;  // NOLINT
  EXPECT_EQ(memory_text(0), "0.0B");
  EXPECT_EQ(memory_text(16384), "16.0KB");
  EXPECT_EQ(memory_text(1825361101), "1.7GB");
  EXPECT_EQ(memory_text(std::nullopt), "n/a");
  EXPECT_EQ(memory_text(std::numeric_limits<std::uint64_t>::max()), "16777216.0TB");
  EXPECT_EQ(rate_text(0.0), "0B/s");
  EXPECT_EQ(rate_text(12.5e9), "12.5GB/s");
  EXPECT_EQ(rate_text(820e3), "820KB/s");
  EXPECT_EQ(rate_text(std::nullopt), "n/a");
  EXPECT_EQ(count_text(99999), "99999");
  EXPECT_EQ(count_text(125000), "125k");
  EXPECT_EQ(frequency_text(0.2), "0.2");
  EXPECT_EQ(frequency_text(17.0), "17");
  EXPECT_EQ(percent_text(56.814), "56.81%");
  EXPECT_EQ(percent_text(std::nullopt), "n/a");
  EXPECT_EQ(teraflops_text(875590474948.0), "0.88TF");
  EXPECT_EQ(teraflops_text(123.4e12), "123TF");
  EXPECT_EQ(age_text(7), "7s");
  EXPECT_EQ(age_text(150), "2m");
  EXPECT_EQ(age_text(7300), "2h");
}

screen::Table small_table(int rows) {
  screen::Table table;
  table.columns = {{"Name", screen::Align::left, 0, false},
                   {"Count", screen::Align::right, 2, false},
                   {"More", screen::Align::right, 1, false},
                   {"Text", screen::Align::left, 0, true}};
  for (int i = 0; i < rows; ++i) {
    const std::string number = std::to_string(i);
    table.rows.push_back({number, {{"row" + number}, {number}, {number}, {"some text that is long"}}});
  }
  return table;
}

TEST(Table, DropsColumnsByPriority) {
  Canvas wide(2, 60);
  draw_table(wide, 0, 2, small_table(1), screen::kNoCursor);
  EXPECT_EQ(wide.to_text(), "Name  Count  More  Text\nrow0      0     0  some text that is long\n");
  Canvas narrow(2, 36);
  draw_table(narrow, 0, 2, small_table(1), screen::kNoCursor);
  EXPECT_EQ(narrow.to_text(), "Name  More  Text\nrow0     0  some text that is long\n");
  Canvas tiny(2, 12);
  draw_table(tiny, 0, 2, small_table(1), screen::kNoCursor);
  EXPECT_EQ(tiny.to_text(), "Name  Text\nrow0  some t\n");
}

TEST(Table, ShowsTheRowsAroundTheCursor) {
  for (int cursor = 0; cursor < 20; ++cursor) {
    Canvas canvas(8, 60);
    EXPECT_EQ(draw_table(canvas, 0, 8, small_table(20), cursor), 8);
    EXPECT_THAT(canvas.to_text(), HasSubstr("row" + std::to_string(cursor) + ' '));
    EXPECT_THAT(canvas.to_text(), HasSubstr(" of 20"));
  }
  Canvas all(8, 60);
  EXPECT_EQ(draw_table(all, 0, 8, small_table(7), 3), 8);
  EXPECT_THAT(all.to_text(), Not(HasSubstr(" of ")));
}

}  // namespace
}  // namespace neuron::render
