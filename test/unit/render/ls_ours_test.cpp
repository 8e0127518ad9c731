// What neuron-ls has beyond the official tool, on the real program.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "agent/core/catalogue.h"
#include "test/fakes/paths.h"
#include "test/unit/render/golden.h"
#include "test/unit/render/json_schema.h"
#include "test/unit/render/ls_program.h"

namespace neuron {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LsOurs : public test::LsProgram {
 protected:
  static json schema() {
    return json::parse(test::text_of(fs::path(fakes::source_dir()) / "docs/schema/neuron-ls-1.json"));
  }
  json report(const std::string& arguments = "") const {
    const Outcome outcome = run("--output-format json " + arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto document = test::parse_strictly(outcome.out);
    EXPECT_TRUE(document) << outcome.out;
    if (!document) return {};
    EXPECT_EQ(test::schema_violation(schema(), *document), "");
    return *document;
  }
  void expect_refusal(const std::string& arguments, const std::string& what) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(what));
  }
};

TEST_F(LsOurs, JsonKeepsTheSchemaOnEveryTypeAndDriver) {
  for (const core::InstanceType& type : core::all_instance_types()) {
    if (!type.family) continue;
    simulate(type.name);
    const json document = report();
    EXPECT_EQ(document["format"], "neuron-ls/1");
    EXPECT_EQ(document["devices"].size(), static_cast<std::size_t>(type.device_count)) << type.name;
    EXPECT_EQ(document["efa_interfaces"].size(), static_cast<std::size_t>(type.efa_count)) << type.name;
    EXPECT_EQ(document["host"]["expected_efa_interfaces"].is_null(), !type.efa_count_is_known) << type.name;
  }
  for (const std::string driver : {"2.24.7.0", "2.27.4.0", "2.28.0.0", "2.31.7.0"}) {
    simulate("trn2.3xlarge", driver);
    EXPECT_EQ(report()["driver"]["version"], driver);
  }
}

TEST_F(LsOurs, JsonSaysWhereValuesComeFrom) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.without = {sim::Part::ioctl};
  simulate(plan);
  const json document = report();
  const json& device = document["devices"][2];
  EXPECT_EQ(device["numa_node"], (json{{"value", 1}, {"origin", "assumed"}}));
  EXPECT_EQ(device["connected_to"]["origin"], "live");
  EXPECT_TRUE(device["bdf"].is_null());
  EXPECT_TRUE(device["processes"].is_null());
  EXPECT_TRUE(document["pods"].is_null());
  EXPECT_EQ(device["health"]["state"], "healthy");
  EXPECT_EQ(device["nearest_efa_interfaces"].size(), 1U);
}

TEST_F(LsOurs, AWholeReportAsGolden) {
  simulate("trn2.3xlarge");
  occupy({0});
  set("neuron0", "mem_ecc_uncorrected=2");
  test::expect_golden("host/trn2.3xlarge.report.json", run("--output-format json").out);
  report();
}

TEST_F(LsOurs, AnErrorThatNamesNoDeviceIsOfTheHost) {
  simulate("trn1.32xlarge");
  EXPECT_FALSE(report()["host"].contains("health"));
  set("host", "kernel_log=NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR");
  EXPECT_EQ(report()["host"]["health"]["reason"], "sram_ecc_uncorrected");
}

TEST_F(LsOurs, MissingDevicesAndContainersAreToldApart) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.missing = {3, 9};
  simulate(plan);
  const json whole = report();
  EXPECT_EQ(whole["host"]["missing_devices"], (json{3, 9}));
  EXPECT_EQ(whole["host"]["missing_devices_health"]["reason"], "device_vanished");
  EXPECT_EQ(whole["host"]["missing_devices_health"]["action"],
            "inspect the kernel log; reboot or replace the instance");
  EXPECT_THAT(run("--health").out, HasSubstr("unhealthy, device_vanished: inspect the kernel log; reboot or replace"));
  EXPECT_EQ(whole["devices"].size(), 14U);
  simulate("trn1.32xlarge");
  for (int i = 1; i < 16; ++i) fs::remove(host() / "dev" / ("neuron" + std::to_string(i)));
  const json container = report();
  EXPECT_THAT(container["host"]["missing_devices"], IsEmpty());
  EXPECT_FALSE(container["host"].contains("missing_devices_health"));
  EXPECT_EQ(container["devices"][1]["device_node"], false);
  EXPECT_EQ(container["devices"][1]["health"]["state"], "healthy");
  EXPECT_THAT(run("--health").out, HasSubstr("which is normal in a container: devices 1-15 of the host"));
}

TEST_F(LsOurs, ADeviceThatCannotBeReadIsNeverHealthy) {
  const std::string hardware = "stats/hardware/sram_ecc_uncorrected";
  simulate("trn2.48xlarge");
  for (const char* how : {"garbage", "fifo", "remove"}) {
    set("neuron3", how, "sram_ecc_uncorrected");
    const std::string out = run("--health").out;
    EXPECT_THAT(out, HasSubstr("neuron3: no usable value in " + hardware)) << how;
    EXPECT_THAT(out, HasSubstr("unknown, signal_unreadable")) << how;
    EXPECT_THAT(out, Not(HasSubstr("all healthy"))) << how;
    EXPECT_EQ(report()["devices"][3]["health"]["state"], "unknown") << how;
  }
  simulate("trn2.48xlarge");
  set("neuron3", "sram_ecc_uncorrected=65535");
  const json document = report();
  EXPECT_EQ(document["devices"][3]["health"]["reason"], "reads_all_ones");
  EXPECT_EQ(document["devices"][3]["signals"]["sram_ecc_uncorrected"], nullptr) << "never a count";
}

TEST_F(LsOurs, ACoreThatIsNotThereIsSaidAndTheOthersAreNamed) {
  simulate("trn2.48xlarge");
  set("neuron5", "core_count=9");
  const std::string out = run("--health").out;
  EXPECT_THAT(out, HasSubstr("neuron5: core 8 is included in core_count"));
  EXPECT_THAT(out, HasSubstr("neuron5: physical cores 0-7 are not affected"));
  const json document = report();
  EXPECT_EQ(document["devices"][5]["health"]["reason"], "core_missing");
  EXPECT_EQ(document["devices"][5]["physical_cores"][0]["health"], "healthy");
}

TEST_F(LsOurs, OneMissingNodeOfManyIsNoContainer) {
  simulate("trn2.48xlarge");
  set("neuron3", "drop-node");
  const std::string out = run("--health").out;
  EXPECT_THAT(out, HasSubstr("dev/neuron3 does not exist"));
  EXPECT_THAT(out, Not(HasSubstr("container")));
  EXPECT_EQ(report()["devices"][3]["health"]["reason"], "device_node_missing");
}

TEST_F(LsOurs, VerbsDevicesOfALoadedModuleAreExplainedOnce) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.without = {sim::Part::uverbs};
  simulate(plan);
  const auto count = [](const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count(run("--health").out, "run: modprobe ib_uverbs"), 1U);
  fs::create_directories(host() / "sys/module/ib_uverbs");
  const std::string out = run("--health").out;
  EXPECT_EQ(count(out, "modprobe -r efa ib_uverbs"), 1U) << out;
  EXPECT_THAT(out, HasSubstr("unhealthy, verbs_devices_missing"));
}

TEST_F(LsOurs, MoreMemoryThanTheDeviceHasIsUnknown) {
  simulate("inf2.xlarge");
  set("neuron0/core1", "device_mem=18446744073709550616");
  const json device = report()["devices"][0];
  EXPECT_TRUE(device["physical_cores"][1]["device_memory_bytes"].is_null());
  EXPECT_EQ(device["physical_cores"][0]["device_memory_bytes"], 0);
  EXPECT_THAT(run("--health").out, HasSubstr("device_mem/total: more than the device has"));
}

TEST_F(LsOurs, NoConnectionLeadsToADeviceThatIsNotThere) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.missing = {3, 5};
  simulate(plan);
  const json document = report();
  for (const json& device : document["devices"]) {
    for (const json& neighbour : device["connected_to"]["value"]) {
      EXPECT_NE(neighbour, 3);
      EXPECT_NE(neighbour, 5);
    }
  }
}

// The driver blanks the lists of all when one device is missing, and so does the official tool.
TEST_F(LsOurs, ConnectionsOfTheTableAreMarkedAndNeverShownAsTheDrivers) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.missing = {3};
  simulate(plan);
  test::expect_golden("host/trn1.32xlarge.missing.txt", run("").out);
  test::expect_golden("host/trn1.32xlarge.missing-efa.txt", run("--efa").out);
  test::expect_golden("host/trn1.32xlarge.missing-topology.txt", run("-t").out);
  for (const json& device : json::parse(run("-j").out)) EXPECT_TRUE(device["connected_to"].is_null());
  const json shown = report();
  for (const json& device : shown["devices"]) EXPECT_EQ(device["connected_to"]["origin"], "assumed");
  const std::string csv = run("--output-format csv").out;
  EXPECT_THAT(csv, HasSubstr(",13 0 5 2,assumed,"));
}

// Drivers before 2.28 show the lists to root only; that is no sign that they are empty.
TEST_F(LsOurs, ConnectionsThatMayNotBeReadAreStillListed) {
  simulate("trn1.32xlarge");
  for (int index = 0; index < 16; ++index) set("neuron" + std::to_string(index), "remove", "connected_devices");
  EXPECT_THAT(run("").out, HasSubstr("| 13, 0, 5, 2   |"));
  EXPECT_THAT(run("--health").out, HasSubstr("| 13, 0, 5, 2 *   |"));
}

TEST_F(LsOurs, AListThatTheDriverLeavesEmptyIsBlank) {
  simulate("inf2.48xlarge");
  set("neuron4", "connected_devices=");
  EXPECT_EQ(json::parse(run("-j").out)[4]["connected_to"], nullptr);
  EXPECT_EQ(json::parse(run("-j").out)[5]["connected_to"], json({4, 6}));
  EXPECT_THAT(run("--health").out, HasSubstr("| 3, 5 * "));
}

TEST_F(LsOurs, CsvHasOneLinePerDevice) {
  simulate("trn2.48xlarge");
  occupy({0});
  set("neuron3", "sram_ecc_uncorrected=1");
  test::expect_golden("host/trn2.48xlarge.csv", run("--output-format csv").out);
}

TEST_F(LsOurs, HealthAndEfaOfAHealthyNode) {
  simulate("trn2.48xlarge");
  test::expect_golden("host/trn2.48xlarge.health-efa.txt", run("--health --efa").out);
  simulate("inf2.xlarge");
  EXPECT_THAT(run("--efa").out, HasSubstr("\nNo EFA interface.\n"));
}

TEST_F(LsOurs, ANodeWithInterfacesOnlyIsListedWhenTheyAreAskedFor) {
  simulate("p5en.48xlarge");
  EXPECT_EQ(run("").exit_code, 1);
  const Outcome outcome = run("--efa");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("INTERFACE"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("CORES")));
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.without = {sim::Part::driver};
  simulate(plan);
  expect_refusal("--efa", "16 Neuron PCI functions found, but the kernel driver is not loaded");
}

TEST_F(LsOurs, ADamagedArchiveIsNotSaidToBeTheWrongDirectory) {
  simulate("trn1.2xlarge");
  const fs::path file = host() / "capture.tar.gz";
  std::ofstream(file) << "no archive";
  const Outcome outcome = run_raw("--root " + file.string(), "");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("capture it again with neuron-gather"));
}

TEST_F(LsOurs, AnArchiveIsARootToo) {
  simulate("inf2.xlarge");
  const std::string archive = (directory_ / "host.tar.gz").string();
  ASSERT_EQ(std::system(("tar -C " + directory_.string() + " -czf " + archive + " host").c_str()), 0);
  const Outcome outcome = run_raw("--health --root " + archive);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, run("--health").out);
  std::ofstream(directory_ / "odd") << "no archive";
  EXPECT_EQ(run_raw("--root " + (directory_ / "odd").string()).exit_code, 1);
}

TEST_F(LsOurs, DeviceChoosesAndRefusesWhatIsNotThere) {
  simulate("trn1.32xlarge");
  const Outcome chosen = run("--device 2-3 --device 15 --health");
  EXPECT_THAT(chosen.out, HasSubstr("| 15     |"));
  EXPECT_THAT(chosen.out, Not(HasSubstr("| 0      |")));
  EXPECT_THAT(chosen.out, HasSubstr("3 devices and 2 EFA interfaces: all healthy."));
  EXPECT_EQ(json::parse(run("-j --device 7").out).size(), 1U);
  const json document = report("--device 4");
  EXPECT_EQ(document["devices"][0]["index"], 4);
  EXPECT_EQ(document["efa_interfaces"].size(), 1U);
  EXPECT_EQ(document["devices"][0]["nearest_efa_interfaces"][0], document["efa_interfaces"][0]["name"]);
  EXPECT_THAT(run("-t --device 0").out, HasSubstr("[15 ]◄––*"));  // the picture stays whole
  expect_refusal("--device 16", "there is no device 16 here: the devices are 0-15");
  expect_refusal("--device x", "--device");
}

TEST_F(LsOurs, WithoutKubeletPodsAreUnknownAndTheRestIsListed) {
  simulate("trn1.2xlarge");
  const Outcome outcome = run("--pods");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("pods are unknown: " + host().string() + "/var/lib/kubelet/pod-resources"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
  EXPECT_THAT(outcome.out, HasSubstr("| NA  |\n"));
  EXPECT_TRUE(report("--pods")["pods"].is_null());
}

TEST_F(LsOurs, NeverColourInAPipe) {
  simulate("trn1.2xlarge");
  set("neuron0", "sram_ecc_uncorrected=1");
  const std::string out = run_raw("--health --root " + host().string(), "TERM=xterm-256color CLICOLOR_FORCE=1").out;
  EXPECT_THAT(out, HasSubstr("unhealthy"));
  EXPECT_THAT(out, Not(HasSubstr("\x1b")));
}

TEST_F(LsOurs, EnvironmentTwins) {
  simulate("trn1.2xlarge");
  const std::string root = "NEURON_LS_ROOT=" + host().string() + ' ';
  EXPECT_EQ(run_raw("", root + "NEURON_LS_HEALTH=true NEURON_LS_EFA=1").out, run("--health --efa").out);
  EXPECT_EQ(run_raw("", root + "NEURON_LS_OUTPUT_FORMAT=csv").out, run("--output-format csv").out);
  EXPECT_EQ(run_raw("-j", root + "NEURON_LS_OUTPUT_FORMAT=csv").out, run("-j").out);
  EXPECT_EQ(run_raw("", root + "NEURON_LS_DEVICE=9").exit_code, 1);
}

TEST_F(LsOurs, TheSchemaBites) {
  simulate("trn1.2xlarge");
  json document = report();
  document["devices"][0]["bdf"]["value"] = "10:1b";
  EXPECT_THAT(test::schema_violation(schema(), document), HasSubstr("/devices/0/bdf"));
  document = report();
  document["devices"][0].erase("serial");
  EXPECT_THAT(test::schema_violation(schema(), document), HasSubstr("required"));
  document = report();
  document["surprise"] = 1;
  EXPECT_THAT(test::schema_violation(schema(), document), HasSubstr("unknown key surprise"));
  EXPECT_FALSE(test::parse_strictly("{\"a\": 1, \"a\": 2}"));
  EXPECT_FALSE(test::parse_strictly("[] x"));
}

}  // namespace
}  // namespace neuron
