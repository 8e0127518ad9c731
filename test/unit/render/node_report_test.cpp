#include "tools/render/node_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/render/scans.h"
#include "tools/render/node_tables.h"

namespace neuron::render {
namespace {

using model::Health;
using model::HealthState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

model::EfaInterface efa(const std::string& name, std::uint8_t bus) {
  model::EfaInterface result;
  result.name = name;
  result.bdf.bus = bus;
  result.driver_bound = !name.empty();
  return result;
}

// The first four devices of a trn1.32xlarge, two interfaces, one pod on device 1 and half of device 2.
NodeReport small_report() {
  NodeReport report;
  report.host = test::trn1_32xlarge();
  report.host.devices.resize(4);
  report.host.efas = {efa("rdmap16s25", 0x10), efa("", 0x20)};
  for (model::NeuronDevice& device : report.host.devices) device.health.state = HealthState::healthy;
  for (model::EfaInterface& efa : report.host.efas) efa.health.state = HealthState::healthy;
  report.core_ids = test::core_ids_of(report.host);
  report.near_efas = {{0}, {0}, {1}, {}};
  report.pods = {{{"default", "a", "main", {1, 2}, {2, 3, 4}, {"rdmap16s25"}}}};
  return report;
}

TEST(NodeReport, WhoIsNearWhom) {
  const NodeReport report = small_report();
  EXPECT_THAT(near_efa_names(report, 1), ElementsAre("rdmap16s25"));
  EXPECT_THAT(near_efa_names(report, 2), ElementsAre("0000:20:00.0"));  // no driver, no name
  EXPECT_THAT(near_efa_names(report, 3), IsEmpty());
  EXPECT_THAT(near_devices(report, 0), ElementsAre(0, 1));
}

TEST(NodeReport, WhoHoldsWhat) {
  NodeReport report = small_report();
  EXPECT_THAT(pods_on_device(report, 2).value(), ElementsAre("default/a"));
  EXPECT_THAT(pods_on_device(report, 0).value(), IsEmpty());
  EXPECT_THAT(pods_on_efa(report, "rdmap16s25").value(), ElementsAre("default/a"));
  report.pods.reset();
  EXPECT_FALSE(pods_on_device(report, 2));
}

TEST(NodeReport, ChosenDevicesTakeTheirNeighbourhoodAlong) {
  const NodeReport chosen = only_devices(small_report(), {2, 3});
  ASSERT_EQ(chosen.host.devices.size(), 2U);
  EXPECT_EQ(chosen.host.devices[0].index, 2);
  EXPECT_THAT(chosen.core_ids[0], ElementsAre(4, 5));
  ASSERT_EQ(chosen.host.efas.size(), 1U);
  EXPECT_EQ(chosen.host.efas[0].bdf.bus, 0x20);
  EXPECT_THAT(chosen.near_efas, ElementsAre(ElementsAre(0), IsEmpty()));
  EXPECT_EQ(chosen.pods->size(), 1U);
  EXPECT_THAT(only_devices(small_report(), {3}).pods.value(), IsEmpty());
}

TEST(NodeReportCsv, QuotesWhatHoldsCommasAndLeavesUnknownEmpty) {
  NodeReport report = small_report();
  report.host.devices.resize(1);
  report.host.devices[0].bdf.reset();
  report.host.devices[0].serial = "a\"b";
  const std::string text = node_report_csv(report);
  EXPECT_THAT(text, StartsWith("device,family,serial,core_ids,"));
  EXPECT_THAT(text,
              HasSubstr("\n0,Trainium1,\"a\"\"b\",0 1,34359738368,12 3 4 1,live,,,0,live,\"0-31,64-95\",healthy,,"));
}

TEST(NodeReportJson, OneLineHoldsTheSameDocument) {
  const std::string line = node_report_json(small_report(), JsonLayout::one_line);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  EXPECT_THAT(line, StartsWith("{\"format\":\"neuron-ls/1\",\"host\":{"));
}

TEST(NodeReportJson, UnknownIsNullAndForeignBytesAreHarmless) {
  NodeReport report = small_report();
  report.host.devices[0] = {};
  report.host.devices[0].processes.emplace().emplace_back().pid = 17;
  report.host.problems = {{model::ProblemKind::file, "", "\xff"}};
  const std::string text = node_report_json(report, JsonLayout::one_line);
  EXPECT_THAT(text, HasSubstr("\"health\":null"));
  EXPECT_THAT(text, HasSubstr("\"physical_cores\":null,\"host_memory_bytes\":null,\"device_memory_bytes\":null"));
  EXPECT_THAT(text, HasSubstr("\"numa_node\":null,\"cpus\":null,\"connected_to\":null,\"memory_bytes\":null"));
  EXPECT_THAT(text, HasSubstr("\xef\xbf\xbd"));
}

TEST(EfaTable, ShowsWhatIsUnboundUnknownAndFree) {
  NodeReport report = small_report();
  report.host.efas[0].uverbs = "uverbs0";
  report.host.efas[0].p2p = "";
  report.host.efas[1].health = {HealthState::unhealthy, "driver_unbound", "", ""};
  const std::string text = efa_table(report);
  EXPECT_THAT(text,
              HasSubstr("| rdmap16s25  | uverbs0 (no node) | 0000:10:00.0 | NA   | -      | 0-1     | healthy   | "
                        "default/a |\n"));
  EXPECT_THAT(text,
              HasSubstr("| (no driver) | -                 | 0000:20:00.0 | NA   | NA     | 2       | unhealthy | "
                        "-         |\n"));
}

TEST(PodTable, OneRowPerContainer) {
  NodeReport report = small_report();
  EXPECT_THAT(pod_table(report), HasSubstr("| default   | a   | main      | 1-2     | 2-4      | rdmap16s25 |\n"));
  report.pods->clear();
  EXPECT_EQ(pod_table(report), "No pod holds a device, a core or an interface.\n");
  report.pods.reset();
  EXPECT_EQ(pod_table(report), "");
}

TEST(HealthNotes, SaysThatAllIsWellOnlyWhenItIs) {
  NodeReport report = small_report();
  EXPECT_EQ(health_notes(report), "4 devices and 2 EFA interfaces: all healthy.\n");
  report.host.devices[2].health = {HealthState::unhealthy, "sram_ecc_uncorrected", "neuron2: 4 errors", "replace it"};
  report.host.devices[1].problems = {{model::ProblemKind::file, "sys/x", "too long"}};
  EXPECT_EQ(health_notes(report),
            "Problems:\n  neuron2: 4 errors\n    unhealthy, sram_ecc_uncorrected: replace it\n"
            "Could not be read:\n  sys/x: too long\n");
  EXPECT_THAT(health_notes(report, ColourDepth::ansi16), HasSubstr("\x1b["));
}

TEST(HealthNotes, NamesWhatIsMissing) {
  NodeReport report = small_report();
  report.expected_devices = 16;
  report.missing_devices = {4, 5, 6};
  report.missing_health = {HealthState::unhealthy, "device_vanished", "it is gone", "look at the log"};
  report.expected_efas = 8;
  report.found_efas = 2;
  EXPECT_THAT(health_notes(report), HasSubstr("  trn1.32xlarge has 16 devices; missing: 4-6\n"
                                              "    unhealthy, device_vanished: look at the log\n"
                                              "  trn1.32xlarge can have 8 EFA interfaces; this instance has 2\n"));
  report.host.devices[3].node_present = false;
  EXPECT_THAT(health_notes(report), ::testing::Not(HasSubstr("container"))) << "on a host the verdict says it";
  report.own_dev = true;
  EXPECT_THAT(health_notes(report),
              HasSubstr("No device node here, which is normal in a container: device 3 of the host."));
}

TEST(HealthNotes, SaysOneCauseOnce) {
  NodeReport report = small_report();
  const model::Health health{HealthState::unhealthy, "verbs_devices_missing", "EFA is unusable", "reload"};
  for (model::EfaInterface& efa : report.host.efas) efa.health = health;
  EXPECT_EQ(health_notes(report), "Problems:\n  EFA is unusable\n    unhealthy, verbs_devices_missing: reload\n");
}

TEST(HealthNotes, NeighboursAmongTheMissingAreNotToldAgain) {
  NodeReport report = small_report();
  report.missing_devices = {4, 5};
  report.host.devices[0].problems = {{model::ProblemKind::absent_neighbours, "x/connected_devices", "4"}};
  EXPECT_THAT(health_notes(report), ::testing::Not(HasSubstr("connected_devices")));
  report.host.devices[0].problems = {{model::ProblemKind::absent_neighbours, "x/connected_devices", "9"}};
  EXPECT_THAT(health_notes(report), HasSubstr("connected_devices"));
}

}  // namespace
}  // namespace neuron::render
