#include "tools/neuron-sim/faults.h"

#include <gmock/gmock.h>

#include <fstream>

#include "agent/base/parse.h"
#include "test/fakes/fake_host.h"
#include "test/fakes/paths.h"
#include "test/unit/sim/files.h"

namespace neuron::sim {
namespace {

using fakes::FakeHost;
using ::testing::HasSubstr;
using testing::is_there;
using testing::text_of;

std::string file_of(const FakeHost& host, int device, const std::string& path) {
  return host.path() + "/sys/class/neuron_device/neuron" + std::to_string(device) + '/' + path;
}

std::string hardware(const FakeHost& host, int device, const std::string& name) {
  return text_of(file_of(host, device, "stats/hardware/" + name));
}

// As the driver's own code prints them: test/unit/health/hbm_counts.csv.
TEST(DriverStates, HbmCountsAreThoseOfTheDriver) {
  std::ifstream file(fakes::source_dir() + "/test/unit/health/hbm_counts.csv");
  int rows = 0;
  for (std::string line; std::getline(file, line);) {
    const auto cells = split(line, ',');
    if (line.starts_with('#') || cells.size() != 9) continue;
    const auto number = [&](std::size_t i) { return static_cast<unsigned>(parse_int(cells[i], 0, 99999).value_or(0)); };
    const int minor = parse_int(split(cells[0], '.')[1], 0, 99).value_or(0);
    if (minor < 24) continue;  // not simulated
    const auto [uncorrected, repairable] = printed_hbm(minor, true, {number(2), number(3), number(1)});
    EXPECT_EQ(uncorrected, number(4)) << line;
    EXPECT_EQ(repairable, number(5)) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 36);
  EXPECT_EQ(printed_hbm(24, false, {5, 2, 1}), std::pair(20482U, 0U)) << "no repair on Trainium1";
  EXPECT_EQ(printed_hbm(26, false, {5, 2, 1}), std::pair(5U, 0U));
}

TEST(DriverStates, HbmOfOneDevice) {
  FakeHost host("trn2.48xlarge");
  host.driver("2.24.7.0").write().set("neuron3", "hbm=5,2,1");
  EXPECT_EQ(hardware(host, 3, "mem_ecc_uncorrected"), "0\n");
  EXPECT_EQ(hardware(host, 3, "mem_ecc_repairable_uncorrected"), "20482\n");
  EXPECT_EQ(hardware(host, 4, "mem_ecc_repairable_uncorrected"), "0\n");
  host.set("neuron3", "heal");
  EXPECT_EQ(hardware(host, 3, "mem_ecc_repairable_uncorrected"), "0\n");
  const auto refused = apply_fault(host.path(), "neuron3", {"hbm=16"});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("UNCORRECTABLE[,REPAIRABLE"));
  EXPECT_FALSE(apply_fault(host.path(), "neuron3", {"remove", "hbm"}));
}

// As driver-trees/2.26.5.0.trn2.48xlarge+off-the-bus has it.
TEST(DriverStates, OffTheBusIsWhatRegistersOfOnesPrint) {
  FakeHost host("trn2.48xlarge");
  host.driver("2.26.5.0").write().set("neuron3", "off-bus");
  EXPECT_EQ(hardware(host, 3, "sram_ecc_uncorrected"), "65535\n");
  EXPECT_EQ(hardware(host, 3, "mem_ecc_uncorrected"), "60\n");
  EXPECT_EQ(hardware(host, 3, "mem_ecc_repairable_uncorrected"), "16380\n");
  EXPECT_EQ(text_of(file_of(host, 3, "info/serial_number")), "ffffffffffffffff\n");
  EXPECT_FALSE(is_there(file_of(host, 3, "stats/hardware/health_status"))) << "not of this driver";
  EXPECT_NE(text_of(file_of(host, 4, "info/serial_number")), "ffffffffffffffff\n");
  host.set("neuron3", "heal");
  EXPECT_EQ(hardware(host, 3, "sram_ecc_uncorrected"), "0\n");

  FakeHost trn1("trn1.32xlarge");
  trn1.driver("2.26.5.0").write().set("neuron3", "off-bus");
  EXPECT_EQ(hardware(trn1, 3, "mem_ecc_uncorrected"), "30\n");
  EXPECT_EQ(hardware(trn1, 3, "mem_ecc_repairable_uncorrected"), "0\n");

  FakeHost newest("trn2.48xlarge");
  newest.driver("2.30.2.0").write().set("neuron3", "off-bus");
  EXPECT_EQ(text_of(file_of(newest, 3, "fw_api_version")), "4294967295\n");
  EXPECT_EQ(hardware(newest, 3, "health_status/healthcheck_heartbeat"), "255\n");
  EXPECT_THAT(hardware(newest, 3, "health_status/unhealthy_components"), HasSubstr("hbm,"));
}

TEST(DriverStates, WithoutItsThreadTheDriverShowsNoReading) {
  FakeHost host("trn2.48xlarge");
  host.driver("2.30.2.0").write().set("host", "nmetric_log_posts=0");
  EXPECT_EQ(text_of(host.path() + "/sys/module/neuron/parameters/nmetric_log_posts"), "0\n");
  for (const int device : {0, 15}) {
    EXPECT_EQ(hardware(host, device, "health_status/healthcheck_heartbeat"), "0\n");
    EXPECT_EQ(hardware(host, device, "health_status/unhealthy_components"), "\n");
  }
  host.set("host", "heal");
  EXPECT_NE(hardware(host, 0, "health_status/healthcheck_heartbeat"), "0\n");
  host.set("host", "enable_sysfs_health_status_nodes=0");
  EXPECT_FALSE(is_there(file_of(host, 7, "stats/hardware/health_status")));
  EXPECT_TRUE(is_there(file_of(host, 7, "stats/hardware/sram_ecc_uncorrected")));
  host.set("host", "heal");
  EXPECT_TRUE(is_there(file_of(host, 7, "stats/hardware/health_status/unhealthy_components")));
}

}  // namespace
}  // namespace neuron::sim
