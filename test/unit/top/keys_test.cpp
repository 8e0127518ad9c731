// Keys: state and key in, state out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "test/unit/top/moments.h"
#include "tools/screen/panels.h"
#include "tools/screen/view_state.h"

namespace neuron::test {
namespace {

using screen::KeyCode;
using screen::Panel;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Keys : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<int> devices() const {
    std::vector<int> indices;
    for (const auto* device : screen::shown_devices(stage_.model, stage_.state)) indices.push_back(device->index);
    return indices;
  }
  Stage stage_{unhealthy_moment("trn2.48xlarge")};
};

TEST_F(Keys, Quit) {
  EXPECT_FALSE(stage_.state.quit);
  stage_.press("q");
  EXPECT_TRUE(stage_.state.quit);
}

TEST_F(Keys, HelpIsClosedByAnyKeyWhichDoesNothingElse) {
  stage_.press("h");
  EXPECT_TRUE(stage_.state.help);
  stage_.press("f");
  EXPECT_FALSE(stage_.state.help);
  EXPECT_FALSE(stage_.state.flops);
  stage_.press("?q");
  EXPECT_TRUE(stage_.state.quit);
}

TEST_F(Keys, TabsOfProcesses) {
  EXPECT_EQ(stage_.state.tab, 0);
  stage_.press("d");
  EXPECT_EQ(stage_.state.tab, 4290);
  EXPECT_THAT(devices(), ElementsAre(0, 1));
  stage_.press("d");
  EXPECT_EQ(stage_.state.tab, 257726);
  stage_.press("d");
  EXPECT_EQ(stage_.state.tab, 0);
  stage_.press("a");
  EXPECT_EQ(stage_.state.tab, 257726);
  stage_.press("2");
  EXPECT_EQ(stage_.state.tab, 4290);
  stage_.press("9");
  EXPECT_EQ(stage_.state.tab, 4290) << "there is no ninth tab";
  stage_.press("1");
  EXPECT_EQ(stage_.state.tab, 0);
}

TEST_F(Keys, AProcessThatEndedLeavesAll) {
  stage_.press("d");
  stage_.model.processes.clear();
  EXPECT_THAT(devices(), SizeIs(16));
  stage_.press("d");
  EXPECT_EQ(stage_.state.tab, 0);
}

TEST_F(Keys, TheCursorStaysOnTheRows) {
  stage_.press(KeyCode::up);
  EXPECT_EQ(stage_.state.cursor, 0);
  stage_.press(KeyCode::page_down);
  stage_.press(KeyCode::page_down);
  EXPECT_EQ(stage_.state.cursor, 15);
  stage_.press(KeyCode::down);
  EXPECT_EQ(stage_.state.cursor, 15);
  stage_.press(KeyCode::home);
  EXPECT_EQ(stage_.state.cursor, 0);
  stage_.press(KeyCode::end);
  EXPECT_EQ(stage_.state.cursor, 15);
  stage_.model.devices.resize(3);
  stage_.press(KeyCode::up);
  EXPECT_EQ(stage_.state.cursor, 1) << "from the last row that is left";
}

TEST_F(Keys, TheTreeOpensAndCloses) {
  stage_.press(KeyCode::enter);
  EXPECT_THAT(stage_.state.expanded, ElementsAre("0"));
  EXPECT_THAT(screen::memory_table(stage_.model, stage_.state).rows, SizeIs(16 + 4));
  stage_.press(KeyCode::down);
  stage_.press(KeyCode::right);
  stage_.press(KeyCode::right);
  EXPECT_THAT(stage_.state.expanded, ElementsAre("0", "0/0"));
  EXPECT_THAT(screen::memory_table(stage_.model, stage_.state).rows, SizeIs(16 + 4 + 6));
  stage_.press(KeyCode::down);
  stage_.press(KeyCode::enter);
  EXPECT_THAT(stage_.state.expanded, SizeIs(2)) << "a kind of memory has nothing below it";
  stage_.press(KeyCode::home);
  stage_.press(KeyCode::left);
  EXPECT_THAT(stage_.state.expanded, ElementsAre("0/0"));
}

TEST_F(Keys, TheWholeTree) {
  stage_.press("x");
  EXPECT_THAT(stage_.state.expanded, SizeIs(16 + 64));
  stage_.press("x");
  EXPECT_THAT(stage_.state.expanded, IsEmpty());
}

TEST_F(Keys, Panels) {
  for (const auto& [key, panel] : {std::pair{"c", Panel::condition},
                                   {"e", Panel::efa},
                                   {"p", Panel::processes},
                                   {"g", Panel::history},
                                   {"m", Panel::memory}}) {
    stage_.press(KeyCode::down);
    stage_.press(key);
    EXPECT_EQ(stage_.state.panel, panel) << key;
    EXPECT_EQ(stage_.state.cursor, 0) << key;
  }
  for (int i = 0; i < 5; ++i) stage_.press(KeyCode::tab);
  EXPECT_EQ(stage_.state.panel, Panel::memory);
}

TEST_F(Keys, Filter) {
  stage_.press("/ND1");
  EXPECT_TRUE(stage_.state.editing);
  EXPECT_THAT(devices(), SizeIs(16)) << "not before enter";
  stage_.press(KeyCode::enter);
  EXPECT_THAT(devices(), ElementsAre(1)) << "not 10 to 15";
  stage_.press(KeyCode::escape);
  EXPECT_THAT(devices(), SizeIs(16));
  stage_.press("/unhealthy");
  stage_.press(KeyCode::enter);
  EXPECT_THAT(devices(), ElementsAre(3));
  stage_.press("/");
  for (int i = 0; i < 20; ++i) stage_.press(KeyCode::backspace);
  stage_.press("llama");
  stage_.press(KeyCode::enter);
  EXPECT_THAT(devices(), ElementsAre(0, 1, 2, 3)) << "by tag and by command";
  stage_.press("/q");
  stage_.press(KeyCode::escape);
  EXPECT_FALSE(stage_.state.quit);
  EXPECT_EQ(stage_.state.filter, "llama") << "escape leaves the old one";
}

TEST_F(Keys, AFilterIsBounded) {
  stage_.press("/" + std::string(1000, 'z'));
  EXPECT_EQ(stage_.state.draft.size(), screen::kMaxFilter);
}

TEST_F(Keys, Sort) {
  stage_.press("s");
  EXPECT_EQ(devices().front(), 2);
  stage_.press("ss");
  EXPECT_EQ(stage_.state.sort, screen::Sort::health);
  const auto by_health = devices();
  EXPECT_EQ(by_health[0], 3);
  EXPECT_EQ(by_health[1], 5);
  EXPECT_EQ(by_health[2], 0) << "equals stay in their order";
}

TEST_F(Keys, OnlyWhatIsShownIsRead) {
  EXPECT_FALSE(screen::request_for(stage_.state).efa);
  EXPECT_FALSE(screen::request_for(stage_.state).power);
  EXPECT_FALSE(screen::request_for(stage_.state).flops);
  stage_.press("f");
  EXPECT_TRUE(screen::request_for(stage_.state).flops);
  stage_.press("e");
  EXPECT_TRUE(screen::request_for(stage_.state).efa);
  stage_.press("c");
  EXPECT_TRUE(screen::request_for(stage_.state).power);
  EXPECT_FALSE(screen::request_for(stage_.state).efa);
}

TEST_F(Keys, NothingBreaksWithoutDevices) {
  Stage stage(idle_moment(0));
  for (const char* keys : {"x", "d", "a", "2", "s", "u", "f", "m", "c", "e", "p", "g", " "}) stage.press(keys);
  for (int code = 0; code <= static_cast<int>(KeyCode::none); ++code) stage.press(static_cast<KeyCode>(code));
  EXPECT_EQ(stage.state.cursor, 0);
}

// Any keys in any order, while devices and processes come and go: every picture can be drawn.
TEST(AnyKeys, NothingBreaks) {
  std::mt19937 random(7);
  const std::vector<screen::Moment> moments = {unhealthy_moment("trn2.48xlarge"), idle_moment(0), idle_moment(40),
                                               old_driver_moment("trn1.32xlarge"), busy_moment("inf2.xlarge")};
  Stage stage(moments.front());
  for (int step = 0; step < 3000; ++step) {
    const auto draw = [&random](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    if (draw(50) == 0) stage.model = screen::make_view_model(moments[static_cast<std::size_t>(draw(5))]);
    if (draw(3) == 0) {
      stage.press(static_cast<KeyCode>(draw(static_cast<int>(KeyCode::none) + 1)));
    } else {
      stage.press(std::string(1, static_cast<char>(' ' + draw(95))));
    }
    stage.state.quit = false;
    EXPECT_GE(stage.state.cursor, 0);
    if (step % 10 != 0) continue;
    EXPECT_FALSE(stage.screen(24 + draw(40), 80 + draw(120)).empty());
  }
}

}  // namespace
}  // namespace neuron::test
