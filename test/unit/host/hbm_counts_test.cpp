// HBM counts by driver, read as files: test/unit/health/hbm_counts.csv.
#include "agent/health/signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "agent/base/parse.h"
#include "agent/health/assess.h"
#include "agent/host/neuron_sysfs.h"
#include "test/fakes/paths.h"
#include "test/unit/core/make_host.h"
#include "test/unit/host/small_host.h"

namespace neuron::host {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Row {
  std::string driver;
  std::string repair_state;
  std::string uncorrectable;  // in the register
  std::string repairable;
  std::string shown_uncorrected;  // by the files; "-": no such file
  std::string shown_repairable;
  std::uint64_t uncorrected = 0;  // what is to be read from them
  std::uint64_t repaired = 0;
  std::string reason{};
};

std::vector<Row> rows() {
  std::ifstream file(fakes::source_dir() + "/test/unit/health/hbm_counts.csv");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    const auto cells = split(line, ',');
    if (line.starts_with('#') || cells.size() != 9) continue;
    const auto text = [&](std::size_t i) { return std::string(cells[i]); };
    rows.push_back({text(0), text(1), text(2), text(3), text(4), text(5), parse_u64(cells[6]).value_or(99),
                    parse_u64(cells[7]).value_or(99), text(8)});
  }
  return rows;
}

std::string name_of(const Row& row) {
  std::string name =
      "driver_" + row.driver + "_state_" + row.repair_state + "_u" + row.uncorrectable + "_r" + row.repairable;
  for (char& c : name) {
    if (c == '.') c = '_';
  }
  return name;
}

model::NeuronDevice read_device(TempTree& tree, const Row& row) {
  const bool is_new = row.driver.starts_with("2.30");
  write_device(tree, 0, is_new ? Generation::trn2_2_30 : Generation::trn1_2_27);
  const std::string folder = "sys/devices/virtual/neuron_device/neuron0/stats/hardware/";
  tree.write(folder + "mem_ecc_uncorrected", row.shown_uncorrected + '\n');
  tree.remove(folder + "mem_ecc_repairable_uncorrected");
  if (row.shown_repairable != "-") tree.write(folder + "mem_ecc_repairable_uncorrected", row.shown_repairable + '\n');
  auto reader = NeuronDeviceReader::open(tree.root(), 0, row.driver);
  EXPECT_TRUE(reader);
  return reader->read();
}

class HbmCounts : public ::testing::TestWithParam<Row> {};

TEST_P(HbmCounts, AreReadByTheDriversForm) {
  const Row& row = GetParam();
  TempTree tree;
  const model::NeuronDevice device = read_device(tree, row);
  EXPECT_EQ(device.family, model::Family::trainium2);
  EXPECT_THAT(sentences(device.problems), ::testing::IsEmpty());
  EXPECT_EQ(device.signals.mem_ecc_uncorrected.value_or(0), row.uncorrected);
  EXPECT_EQ(device.signals.mem_ecc_repairable_uncorrected.value_or(0), row.repaired);
}

TEST_P(HbmCounts, GiveTheAdviceThatIsDue) {
  const Row& row = GetParam();
  TempTree tree;
  model::HostScan scan = test::scan_of("trn2.48xlarge");
  scan.driver_version = row.driver;
  const bool has_health = row.driver.starts_with("2.30");
  const bool has_repairable = row.shown_repairable != "-";
  for (model::NeuronDevice& device : scan.devices) {
    if (!has_health) {
      device.signals.heartbeat.reset();
      device.signals.unhealthy_components.reset();
    }
    if (!has_repairable) {
      device.signals.mem_ecc_repairable_uncorrected.reset();
      for (model::CoreSignals& core : device.cores) core.hw_repairable_hbm_ue_error.reset();
    }
  }
  const model::DeviceSignals read = read_device(tree, row).signals;
  model::DeviceSignals& signals = scan.devices[3].signals;
  signals.mem_ecc_uncorrected = read.mem_ecc_uncorrected;
  signals.mem_ecc_repairable_uncorrected = read.mem_ecc_repairable_uncorrected;
  signals.hbm_packed = read.hbm_packed;
  health::HealthMemory memory;
  const health::HealthResult result = health::evaluate(scan, memory);
  EXPECT_EQ(result.devices[2].state, model::HealthState::healthy) << result.devices[2].sentence;
  EXPECT_EQ(result.devices[3].reason, row.reason) << result.devices[3].sentence;
  if (row.reason == "mem_ecc_uncorrected") {
    EXPECT_THAT(result.devices[3].action, HasSubstr("replace the instance"));
  }
  if (row.reason == "mem_ecc_repairable_uncorrected") {
    EXPECT_THAT(result.devices[3].action, HasSubstr("reload"));
  }
}

INSTANTIATE_TEST_SUITE_P(ByDriver, HbmCounts, ::testing::ValuesIn(rows()),
                         [](const auto& suite) { return name_of(suite.param); });

TEST(HbmCountsTable, HasAllRows) {
  EXPECT_EQ(rows().size(), 54U);
}

// On Trainium1 and Inferentia2 the firmware decides what the number is, and sysfs does not show the firmware.
TEST(HbmCountsTable, ANumberOfTwoMeaningsCountsAsTheGraverOne) {
  const auto read_as = [](std::string_view driver, model::Family family, std::uint64_t shown) {
    model::DeviceSignals signals;
    signals.mem_ecc_uncorrected = shown;
    signals.mem_ecc_repairable_uncorrected = 0;
    health::unpack_hbm_counts(signals, health::hbm_form(health::parse_release(driver), family));
    return std::pair(*signals.mem_ecc_uncorrected, *signals.mem_ecc_repairable_uncorrected);
  };
  EXPECT_EQ(read_as("2.24.7.0", model::Family::trainium1, 2), std::pair(2UL, 0UL));
  EXPECT_EQ(read_as("2.24.7.0", model::Family::inferentia2, 20482), std::pair(5UL, 2UL));
  EXPECT_EQ(read_as("2.x.8072.0", model::Family::trainium2, 2), std::pair(2UL, 0UL));
  EXPECT_EQ(read_as("2.x.8072.0", model::Family::trainium2, 20482), std::pair(5UL, 2UL));
  EXPECT_EQ(read_as("2.27.4.0", model::Family::trainium2, 60), std::pair(60UL, 0UL));
}

// Four registers of 16 bits: older drivers print their sum.
TEST(HbmCountsTable, SumsOfRegistersAreRead) {
  TempTree tree;
  Row row{"2.22.2.0", "0", "", "", "81928", "-"};  // 5 and 2 in each of the four
  model::NeuronDevice device = read_device(tree, row);
  EXPECT_EQ(device.signals.mem_ecc_uncorrected, 20U);
  EXPECT_EQ(device.signals.mem_ecc_repairable_uncorrected, 8U);
  row.shown_uncorrected = "262140";
  device = read_device(tree, row);
  EXPECT_EQ(device.signals.mem_ecc_uncorrected, 262140U) << "all ones; the health policy judges it";
  EXPECT_THAT(sentences(device.problems), ::testing::IsEmpty());
  row.shown_uncorrected = "262141";
  EXPECT_THAT(sentences(read_device(tree, row).problems),
              ::testing::ElementsAre(HasSubstr("not a number from 0 to 262140")));
}

TEST(HbmCountsTable, TheSentenceNamesTheNumberThatTheFileShows) {
  TempTree tree;
  model::HostScan scan = test::scan_of("trn2.48xlarge");
  scan.driver_version = "2.25.4.0";
  scan.devices[3].signals = read_device(tree, {"2.25.4.0", "1", "5", "2", "0", "20482"}).signals;
  health::HealthMemory memory;
  const model::Health health = health::evaluate(scan, memory).devices[3];
  EXPECT_THAT(health.sentence, HasSubstr("5 uncorrected HBM errors"));
  EXPECT_THAT(health.sentence, HasSubstr("20482"));
  EXPECT_THAT(health.sentence, HasSubstr("stats/hardware/mem_ecc_repairable_uncorrected"));
}

}  // namespace
}  // namespace neuron::host
