// Whole pictures, compared with text that was read by people.
#include "tools/screen/screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <locale>
#include <sstream>

#include "test/unit/top/moments.h"

namespace neuron::test {
namespace {

using screen::KeyCode;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Screen, Trn1) {
  expect_screen("trn1.32xlarge.txt", Stage(busy_moment("trn1.32xlarge")).screen(60, 160));
}

TEST(Screen, Trn2) {
  expect_screen("trn2.48xlarge.txt", Stage(busy_moment("trn2.48xlarge")).screen(60, 160));
}

TEST(Screen, Trn2InTheSmallestTerminal) {
  expect_screen("trn2.48xlarge.80x24.txt", Stage(busy_moment("trn2.48xlarge")).screen(24, 80));
}

TEST(Screen, OneDevice) {
  expect_screen("inf2.xlarge.txt", Stage(busy_moment("inf2.xlarge")).screen(24, 80));
}

TEST(Screen, NoDevice) {
  expect_screen("no_device.txt", Stage(idle_moment(0)).screen(24, 80));
}

TEST(Screen, SixtyFourDevices) {
  expect_screen("64_devices.80x24.txt", Stage(idle_moment(64)).screen(24, 80));
}

TEST(Screen, SixtyFourDevicesWithRoom) {
  expect_screen("64_devices.120x90.txt", Stage(idle_moment(64)).screen(90, 120));
}

TEST(Screen, TooSmall) {
  expect_screen("too_small.txt", Stage(busy_moment("trn2.48xlarge")).screen(23, 80));
}

TEST(Screen, Unhealthy) {
  Stage stage(unhealthy_moment("trn2.48xlarge"));
  stage.press("c");
  expect_screen("unhealthy.txt", stage.screen(40, 120));
}

TEST(Screen, Stale) {
  expect_screen("stale.txt", Stage(busy_moment("trn1.32xlarge")).screen(24, 80, "stale since 12s"));
}

TEST(Screen, OldDriver) {
  expect_screen("driver_2.27.txt", Stage(old_driver_moment("trn1.32xlarge")).screen(40, 120));
}

TEST(Screen, Help) {
  Stage stage(busy_moment("trn2.48xlarge"));
  stage.press("?");
  expect_screen("help.txt", stage.screen(24, 80));
}

TEST(Screen, Ascii) {
  Stage stage(busy_moment("trn1.32xlarge"));
  stage.charset = render::Charset::ascii;
  const std::string screen = stage.screen(50, 120);
  expect_screen("ascii.txt", screen);
  EXPECT_TRUE(std::all_of(screen.begin(), screen.end(), [](char c) { return c == '\n' || (c >= ' ' && c < 127); }));
}

TEST(Screen, AsciiCompactAndHelp) {
  Stage stage(busy_moment("trn2.48xlarge"));
  stage.charset = render::Charset::ascii;
  stage.press("u");
  stage.press("u");
  expect_screen("ascii.compact.txt", stage.screen(24, 80));
  stage.press("?");
  const std::string screen = stage.screen(24, 80);
  EXPECT_TRUE(std::all_of(screen.begin(), screen.end(), [](char c) { return c == '\n' || (c >= ' ' && c < 127); }));
}

TEST(Screen, Teraflops) {
  Stage stage(busy_moment("trn2.48xlarge"));
  stage.press("f");
  expect_screen("teraflops.txt", stage.screen(50, 120));
}

TEST(Screen, MemoryTree) {
  Stage stage(busy_moment("trn2.48xlarge"));
  stage.press(KeyCode::enter);
  stage.press(KeyCode::down);
  stage.press(KeyCode::right);
  expect_screen("memory_tree.txt", stage.screen(60, 120));
}

TEST(Screen, Efa) {
  Stage stage(unhealthy_moment("trn1.32xlarge"));
  stage.press("e");
  expect_screen("efa.txt", stage.screen(45, 120));
}

TEST(Screen, ProcessesAndPods) {
  screen::Moment moment = busy_moment("trn2.48xlarge");
  add_pods(moment);
  Stage stage(moment);
  stage.press("p");
  expect_screen("processes.txt", stage.screen(40, 140));
}

TEST(Screen, PodsWithClaims) {
  screen::Moment moment = busy_moment("trn1.32xlarge");
  add_claims(moment);
  Stage stage(moment);
  stage.press("p");
  expect_screen("claims.txt", stage.screen(46, 120));
}

TEST(Screen, History) {
  Stage stage(busy_moment("trn1.32xlarge"));
  const screen::ViewModel busy = stage.model;
  for (int i = 0; i < 30; ++i) {
    stage.model.mean_percent = i * 3.3;
    if (i % 10 == 9) stage.model.mean_percent.reset();
    stage.history.add(stage.model);
  }
  stage.model = busy;
  stage.press("g");
  expect_screen("history.txt", stage.screen(40, 100));
}

TEST(Screen, OneApp) {
  Stage stage(busy_moment("trn1.32xlarge"));
  stage.press("d");
  expect_screen("one_app.txt", stage.screen(30, 100));
}

TEST(Screen, FilterSortAndPause) {
  Stage stage(busy_moment("trn1.32xlarge"));
  stage.press("/nd3");
  stage.press(KeyCode::enter);
  stage.press("s ");
  expect_screen("filtered.txt", stage.screen(24, 90, "PAUSED"));
}

TEST(Screen, AMissingDevice) {
  screen::Moment moment = busy_moment("trn1.32xlarge");
  moment.scan.devices.erase(moment.scan.devices.begin() + 4);
  const std::string screen = Stage(moment).screen(30, 120);
  EXPECT_THAT(screen, HasSubstr("1 of the 16 devices of this instance type are missing"));
  EXPECT_THAT(screen, Not(HasSubstr("ND4 ")));
}

TEST(Screen, EditingAFilter) {
  Stage stage(busy_moment("trn1.32xlarge"));
  stage.press("/LLama");
  EXPECT_THAT(stage.screen(24, 80), HasSubstr("Filter: llama_"));
}

TEST(Print, Trn2) {
  screen::Moment moment = unhealthy_moment("trn2.48xlarge");
  add_pods(moment);
  expect_screen("once.trn2.48xlarge.txt", Stage(moment).print(120));
}

TEST(Print, NoDevice) {
  expect_screen("once.no_device.txt", Stage(idle_moment(0)).print(80));
}

TEST(Print, IsTheSameInALocaleWithDecimalCommas) {
  struct Commas : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
  };
  const Stage stage(busy_moment("trn2.48xlarge"));
  const std::string expected = stage.print(120);
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Commas));
  const std::string text = stage.print(120);
  std::locale::global(before);
  EXPECT_EQ(text, expected);
}

// Nothing is known of the cores: "n/a" everywhere, and nowhere a zero that was not measured.
TEST(Screen, UnknownIsNeverZero) {
  const Stage stage(old_driver_moment("trn2.48xlarge"));
  const std::string screen = stage.screen(60, 160);
  EXPECT_THAT(screen, HasSubstr("n/a: driver 2.27.4.0 counts busy time only when a process ends"));
  EXPECT_THAT(screen, HasSubstr("[   n/a]"));
  EXPECT_THAT(screen, Not(HasSubstr("[ 0.00%]")));
}

// No size breaks the arithmetic, and no line is wider than the terminal.
TEST(Screen, FitsEverySize) {
  for (const int devices : {0, 1, 5, 16, 64}) {
    Stage stage(idle_moment(devices));
    for (const char panel : std::string("mcepg")) {
      stage.press(std::string(1, panel));
      for (const int rows : {1, 2, 23, 24, 25, 39, 40, 57, 200}) {
        for (const int columns : {1, 20, 79, 80, 81, 120, 139, 140, 300}) {
          std::istringstream lines(stage.screen(rows, columns));
          int count = 0;
          for (std::string line; std::getline(lines, line); ++count) {
            EXPECT_LE(render::cells_of(line, render::Charset::utf8).size(), static_cast<std::size_t>(columns));
          }
          EXPECT_LE(count, rows);
        }
      }
    }
  }
}

}  // namespace
}  // namespace neuron::test
