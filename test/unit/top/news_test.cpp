// What is wrong comes first, complete and true; and what cannot be told says why.
#include "tools/screen/screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/top/moments.h"
#include "tools/screen/table.h"

namespace neuron::test {
namespace {

using model::HealthState;
using screen::KeyCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string news_of(const Stage& stage, int columns, int most = 10) {
  std::string text;
  for (const auto& line : screen::news(stage.scene(), columns, most)) text += line.text + '\n';
  return text;
}

// The same counters again: a capture, read twice.
screen::Moment capture_moment() {
  screen::Moment moment = busy_moment("trn2.48xlarge");
  model::UsageSample before = moment.sample;
  before.at -= std::chrono::seconds(1);
  moment.rates = core::usage_rates(before, moment.sample, moment.scan);
  return moment;
}

TEST(Wrapped, AtBlanksAndNeverBeyondTheWidth) {
  EXPECT_THAT(screen::wrapped("one two three", 80, 2), ElementsAre("one two three"));
  EXPECT_THAT(screen::wrapped("one two three four", 9, 3), ElementsAre("one two", "  three", "  four"));
  EXPECT_THAT(screen::wrapped("one two three four", 9, 2), ElementsAre("one two", "  thre..."));
  EXPECT_THAT(screen::wrapped("abcdefghijkl", 6, 3), ElementsAre("abcdef", "  ghij", "  kl"));
  EXPECT_THAT(screen::wrapped("", 6, 3), ElementsAre(""));
}

TEST(News, NoneWhenAllIsWell) {
  EXPECT_THAT(screen::news(Stage(busy_moment("trn2.48xlarge")).scene(), 80, 4), IsEmpty());
}

TEST(News, LongReasonsTakeASecondLineAndLoseNothing) {
  screen::Moment moment = unhealthy_moment("trn2.48xlarge");
  moment.scan.devices[3].health.sentence =
      "neuron3: the device node dev/neuron3 is there and does not answer, which other devices of this machine do";
  const std::string text = news_of(Stage(moment), 80);
  EXPECT_THAT(text, HasSubstr("ND3 is unhealthy (+2 more: c, e): the device node dev/neuron3"));
  EXPECT_THAT(text, Not(HasSubstr("neuron3:"))) << "the name is there already";
  EXPECT_THAT(text, HasSubstr("machine do\n"));
  EXPECT_LE(screen::news(Stage(moment).scene(), 80, 2).size(), 2U);
}

TEST(News, NamesWithAnAddressAreSaidOnceToo) {
  screen::Moment moment = busy_moment("trn1.32xlarge");
  const std::string name = moment.scan.efas[2].name;
  moment.scan.efas[2].health = {HealthState::unhealthy, "efa_node", name + " (0000:20:19.0): no node", ""};
  EXPECT_THAT(news_of(Stage(moment), 80), HasSubstr(name + " is unhealthy: no node"));
}

TEST(News, MissingDevicesAreToldBesideWhatElseIsWrong) {
  screen::Moment moment = unhealthy_moment("trn2.48xlarge");
  moment.scan.devices.pop_back();
  EXPECT_THAT(news_of(Stage(moment), 80), HasSubstr("1 of the 16 devices of this instance type are missing"));
}

TEST(News, UnknownHealthIsNotCalm) {
  screen::Moment moment = busy_moment("trn2.48xlarge");
  moment.scan.devices[4].health = {HealthState::unknown, "signal_unreadable", "ECC counts cannot be read", ""};
  moment.scan.devices[6].health = moment.scan.devices[4].health;
  const Stage stage(moment);
  EXPECT_THAT(news_of(stage, 80), HasSubstr("health of ND4 is unknown (+1 more: c, e): ECC counts cannot be read"));
  EXPECT_THAT(stage.screen(24, 80), HasSubstr("ND4? "));
  moment.scan.devices[9].health = {HealthState::degraded, "hbm_repairable", "a row awaits repair", ""};
  EXPECT_THAT(news_of(Stage(moment), 80), HasSubstr("ND9 is degraded (+2 more: c, e)")) << "known trouble comes first";
}

TEST(News, WhyUtilizationIsUnknownIsNeverCut) {
  const Stage stage(old_driver_moment("trn1.32xlarge"));
  EXPECT_EQ(screen::cores_heading(stage.scene(), 80), "NeuronCore v2 Utilization (n/a)");
  EXPECT_THAT(news_of(stage, 80), HasSubstr("utilization n/a: driver 2.27.4.0 counts busy time only when a process"));
  EXPECT_THAT(news_of(stage, 80), HasSubstr("2.30.2)\n"));
  EXPECT_THAT(screen::news(stage.scene(), 140, 4), IsEmpty()) << "the heading says it";
}

TEST(Scene, TheMeanIsOfWhatIsShown) {
  Stage stage(busy_moment("trn2.48xlarge"));
  stage.press("/nd9");
  stage.press(KeyCode::enter);
  EXPECT_EQ(screen::cores_heading(stage.scene(), 120), "NeuronCore v3d Utilization (Avg: 0.00%, 1 of 16 devices)");
  stage.press("f");
  EXPECT_THAT(screen::cores_heading(stage.scene(), 120), HasSubstr("Teraflops (Sum: 0.00TF)"));
  stage.press("/nothing");
  stage.press(KeyCode::enter);
  EXPECT_THAT(screen::cores_heading(stage.scene(), 120), HasSubstr("n/a: no device passes the filter"));
}

TEST(Scene, ACaptureIsNotShownAsIdle) {
  const std::string screen = Stage(capture_moment()).screen(50, 140);
  EXPECT_THAT(screen, HasSubstr("Utilization (n/a: captured machine, values are constant)"));
  EXPECT_THAT(screen, HasSubstr("vCPU Utilization (128 vCPUs) (n/a: captured machine, values"));
  EXPECT_THAT(screen, Not(HasSubstr("0.00%")));
  EXPECT_THAT(screen, HasSubstr("Tensors: 96.0GB")) << "what stands in the capture is shown";
}

TEST(Scene, SumsAreOfTheDevicesThatAreKnown) {
  screen::Moment moment = busy_moment("trn2.48xlarge");
  moment.sample.devices[7] = {7, std::nullopt, {}, {}};  // gone
  model::UsageSample before = moment.sample;
  before.at -= std::chrono::seconds(1);
  moment.rates = core::usage_rates(before, moment.sample, moment.scan);
  const std::string screen = Stage(moment).screen(24, 80);
  EXPECT_THAT(screen, HasSubstr("Memory Usage Summary (15 of 16 devices known)"));
  EXPECT_THAT(screen, HasSubstr("Total: 102.1GB"));
  EXPECT_THAT(screen, HasSubstr("Tens: 96.0GB"));
}

TEST(Scene, ItemsOfTheMemorySummaryAreWholeOrAbsent) {
  screen::Moment moment = busy_moment("trn2.48xlarge");
  for (auto& device : moment.sample.devices) {
    for (auto& core : device.cores) core.device_memory.fill((std::uint64_t{1} << 30U) + 77'777'777);
  }
  moment.rates = core::usage_rates(moment.sample, moment.sample, moment.scan);
  const Stage stage(moment);
  for (int columns = 80; columns < 190; ++columns) {
    const std::string screen = stage.screen(24, columns);
    const auto begin = screen.find("\nDevice ") + 1;
    const std::string line = screen.substr(begin, screen.find('\n', begin) - begin);
    EXPECT_TRUE(line.ends_with("GB") || line.ends_with("TB")) << columns << ": " << line;
  }
}

TEST(Scene, WhatCannotBeReadIsTold) {
  screen::Moment moment = busy_moment("trn2.48xlarge");
  moment.scan.devices[4].problems = {
      {model::ProblemKind::file, "sys/class/neuron_device/neuron4/stats/power/utilization", "Is a directory"}};
  moment.scan.efas[1].problems = {{model::ProblemKind::file, "ports/1/state", "Input/output error"}};
  Stage stage(moment);
  EXPECT_THAT(stage.model.problems,
              ::testing::Contains("sys/class/neuron_device/neuron4/stats/power/utilization: Is a directory"));
  stage.press("c");
  EXPECT_THAT(stage.screen(60, 140), HasSubstr("0  stats/power/utilization: Is a directory"));
  stage.press("e");
  EXPECT_THAT(stage.screen(60, 140), HasSubstr("ports/1/state: Input/output error"));
  EXPECT_THAT(stage.model.problems,
              ::testing::Contains(moment.scan.efas[1].name + ": ports/1/state: Input/output error"));
}

TEST(Scene, TheSelectedRowTellsAllOfItsReason) {
  screen::Moment moment = unhealthy_moment("trn1.32xlarge");
  moment.scan.efas[1].health.action = "bind it again, then restart the pods that hold it";
  Stage stage(moment);
  stage.press("e");
  stage.press(KeyCode::down);
  const std::string screen = stage.screen(30, 80);
  EXPECT_THAT(screen, HasSubstr("What was seen"));
  EXPECT_THAT(screen, HasSubstr(moment.scan.efas[1].name + ": the efa driver is not bound; bind it again"));
  EXPECT_THAT(screen, HasSubstr("hold it\n"));
}

TEST(Scene, PodsOfProcessesAndInterfacesAreSeenInTheSmallestTerminal) {
  screen::Moment moment = busy_moment("trn2.48xlarge");
  add_pods(moment);
  Stage stage(moment);
  stage.press("p");
  EXPECT_THAT(stage.screen(24, 80), HasSubstr("12.0GB  team-a/train-0"));
  stage.press("e");
  EXPECT_THAT(stage.screen(24, 80), HasSubstr("team-a/train-0"));
}

TEST(Scene, TabsWithTheSameTagAreToldApart) {
  screen::Moment moment = busy_moment("trn2.48xlarge");
  for (auto& process : moment.sample.processes) process.tag = "train";
  const std::string screen = Stage(moment).screen(24, 80);
  EXPECT_THAT(screen, HasSubstr("train 4290"));
  EXPECT_THAT(screen, HasSubstr("train 257726"));
}

TEST(Scene, ErrorColumnsSayOfWhat) {
  Stage stage(unhealthy_moment("trn2.48xlarge"));
  stage.press("c");
  EXPECT_THAT(stage.screen(24, 80), HasSubstr("SRAM UE"));
  EXPECT_THAT(stage.screen(24, 80), HasSubstr("HBM UE"));
}

}  // namespace
}  // namespace neuron::test
