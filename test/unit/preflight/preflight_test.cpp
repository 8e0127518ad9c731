#include "agent/preflight/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/health/reasons.h"
#include "test/unit/preflight/preflight_host.h"

namespace neuron::test {
namespace {

using model::ProblemKind;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

std::string all_evidence(const preflight::Finding& finding) {
  std::string text;
  for (const preflight::Evidence& evidence : finding.evidence) text += evidence.path + ": " + evidence.value + '\n';
  return text;
}

TEST(Preflight, ADeviceOffTheBusShowsWhatItsRegistersRead) {
  CheckedHost host = sound_host("trn2.48xlarge");
  model::NeuronDevice& gone = host.scan.devices[3];
  gone.serial = "ffffffffffffffff";
  gone.serial_all_ones = true;
  gone.signals.sram_ecc_uncorrected = 65535;
  gone.signals.mem_ecc_uncorrected = 60;
  gone.signals.mem_ecc_repairable_uncorrected = 16380;
  const auto findings = check(host);
  ASSERT_THAT(codes_of(findings), ElementsAre("reads_all_ones"));
  EXPECT_EQ(findings[0].severity, preflight::Severity::error);
  EXPECT_THAT(findings[0].sentence, HasSubstr("neuron3 is off the bus"));
  const std::string folder = "sys/class/neuron_device/neuron3/";
  EXPECT_THAT(findings[0].evidence,
              ElementsAre(preflight::Evidence{folder + "info/serial_number", "ffffffffffffffff"},
                          preflight::Evidence{folder + "stats/hardware/sram_ecc_uncorrected", "65535"},
                          preflight::Evidence{folder + "stats/hardware/mem_ecc_uncorrected", "60"},
                          preflight::Evidence{folder + "stats/hardware/mem_ecc_repairable_uncorrected", "16380"}));
}

TEST(Preflight, HealthThatIsNotMeasuredIsOneFindingForAll) {
  CheckedHost host = sound_host("trn2.48xlarge");
  host.scan.driver_settings.shows_health_files = false;
  for (auto& device : host.scan.devices) {
    device.signals.heartbeat.reset();
    device.signals.unhealthy_components.reset();
    device.signals.hw_error_events.reset();
  }
  const auto findings = check(host);
  ASSERT_THAT(codes_of(findings), ElementsAre("health_not_measured"));
  EXPECT_THAT(findings[0].subjects, SizeIs(16));
  EXPECT_THAT(findings[0].fix, Not(HasSubstr("reload")));
  EXPECT_THAT(findings[0].fix, HasSubstr("enable_sysfs_health_status_nodes=1"));
  ASSERT_THAT(findings[0].evidence, Not(IsEmpty()));
  EXPECT_EQ(findings[0].evidence[0].path, "sys/module/neuron/parameters/enable_sysfs_health_status_nodes");
}

TEST(Preflight, APackedCountIsShownAsTheFileHasIt) {
  CheckedHost host = sound_host("trn2.48xlarge");
  host.scan.driver_version = "2.25.4.0";
  host.scan.layout = model::DriverLayout::stats;
  for (auto& device : host.scan.devices) {
    device.signals.heartbeat.reset();
    device.signals.unhealthy_components.reset();
    device.signals.hw_error_events.reset();
  }
  model::DeviceSignals& signals = host.scan.devices[3].signals;
  signals.mem_ecc_uncorrected = 5;
  signals.mem_ecc_repairable_uncorrected = 2;
  signals.hbm_packed = {20482, true};
  const auto finding = finding_of(host, "mem_ecc_uncorrected");
  ASSERT_THAT(finding.evidence, SizeIs(1));
  EXPECT_EQ(finding.evidence[0].path, "sys/class/neuron_device/neuron3/stats/hardware/mem_ecc_repairable_uncorrected");
  EXPECT_EQ(finding.evidence[0].value, "20482, which is 5 uncorrectable and 2 repairable");
}

TEST(Preflight, WorstFirstAndStable) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.facts.huge_pages.reserved_2m = 0;
  host.facts.cdi = {preflight::CdiFacts::State::off, {"etc/containerd/config.toml", "enable_cdi = false"}};
  host.scan.devices[9].signals.sram_ecc_uncorrected = 1;
  host.scan.devices[2].signals.sram_ecc_uncorrected = 1;
  const auto findings = check(host);
  EXPECT_THAT(codes_of(findings),
              ElementsAre("sram_ecc_uncorrected", "sram_ecc_uncorrected", "huge_pages_none", "cdi_off"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("neuron2"));
  EXPECT_THAT(findings[1].subjects, ElementsAre("neuron9"));
  EXPECT_EQ(check(host), findings);
}

TEST(Preflight, DriverOfInf1IsPinned) {
  CheckedHost host = sound_host("inf1.6xlarge");
  host.scan.devices.clear();  // what drivers from 2.25 do
  host.scan.layout = model::DriverLayout::none;
  host.facts.pci_family = model::Family::inferentia;
  for (const char* version : {"2.25.4.0", "2.30.2.0"}) {
    host.scan.driver_version = version;
    const preflight::Finding finding = finding_of(host, "driver_wrong_for_chip");
    EXPECT_THAT(finding.sentence, HasSubstr("needs 2.24 or older")) << version;
    EXPECT_THAT(finding.fix, HasSubstr("2.24.*"));
  }
  for (const char* version : {"2.24.13.0", "2.x.8072.0"}) {  // right, or nobody can tell
    host.scan.driver_version = version;
    EXPECT_THAT(codes_of(check(host)), ElementsAre("driver_shows_no_device")) << version;
  }
  host.scan.driver_version.clear();
  host.facts.neuron_class = preflight::PathState::absent;
  EXPECT_THAT(finding_of(host, "driver_missing").fix, HasSubstr("2.24.*"));
}

TEST(Preflight, NewChipsNeedNewDrivers) {
  CheckedHost host = sound_host("trn2.48xlarge");
  host.scan.driver_version = "2.18.12.0";
  EXPECT_THAT(finding_of(host, "driver_wrong_for_chip").sentence, HasSubstr("needs 2.19 or newer"));
  host.scan.driver_version = "2.19.0";
  EXPECT_THAT(check(host), IsEmpty());
}

TEST(Preflight, MissingDeviceBlanksTheNeighboursOfAll) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.scan.devices.erase(host.scan.devices.begin() + 3);
  host.scan.neuron_pci_functions = 15;
  for (auto& device : host.scan.devices) device.neighbours = {{}, model::Origin::live};
  host.scan = core::complete(host.scan);
  const preflight::Finding finding = finding_of(host, "devices_missing");
  EXPECT_THAT(finding.sentence,
              HasSubstr("15 of 16 Neuron devices of a trn1.32xlarge are there; missing: neuron3 (device_vanished)"));
  EXPECT_THAT(finding.sentence, HasSubstr("blank the neighbour lists of all others"));
  EXPECT_THAT(all_evidence(finding), HasSubstr("connected_devices: empty or not readable for 15 devices"));
  EXPECT_THAT(finding.fix, ::testing::StartsWith(std::string(health::reasons::kDeviceVanished.action)));
  EXPECT_THAT(finding.subjects, ElementsAre("neuron3"));
}

TEST(Preflight, AListThatCannotBeReadLacksNoDevice) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.scan.devices.clear();
  host.scan.unread_lists = {{model::ScanPart::Kind::devices}};
  for (const preflight::Finding& finding : check(host)) {
    for (const char* code : {"devices_missing", "driver_missing", "driver_shows_no_device"}) {
      EXPECT_NE(finding.code, code) << finding.sentence;
    }
  }
}

TEST(Preflight, MissingDeviceThatPciStillHas) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.scan.devices.pop_back();
  EXPECT_THAT(finding_of(host, "devices_missing").fix, HasSubstr("the driver did not bind it"));
}

TEST(Preflight, HardwareThatIsNotThereAtAll) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.scan.devices.clear();
  host.scan.neuron_pci_functions = 0;
  EXPECT_THAT(finding_of(host, "devices_missing").sentence, HasSubstr("0 of 16 Neuron devices"));
}

// A missing driver explains missing devices; a half-empty PCI bus is a finding of its own.
TEST(Preflight, OneCauseOneFinding) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.scan.devices.clear();
  host.scan.driver_version.clear();
  host.facts.neuron_class = preflight::PathState::absent;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("driver_missing"));
  host.scan.neuron_pci_functions = 12;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("driver_missing", "devices_missing"));
}

TEST(Preflight, AContainersOwnDevSaysNothingAboutTheHost) {
  CheckedHost host = sound_host("trn1.32xlarge");
  for (auto& device : host.scan.devices) device.node_present = false;
  for (auto& efa : host.scan.efas) efa.node_present = false;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("device_node_missing", "verbs_node_missing"));
  host.facts.own_dev = true;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("not_checked"));
  EXPECT_THAT(check(host)[0].evidence, SizeIs(2));
  host.scan.devices[0].node_present = true;  // it was given some: then the others are missing
  EXPECT_THAT(codes_of(check(host)), ElementsAre("device_node_missing", "not_checked"));
}

TEST(Preflight, EvidenceIsTheFileAndItsValue) {
  CheckedHost host = sound_host("trn2.48xlarge");
  host.scan.devices[5].signals.sram_ecc_uncorrected = 3;
  host.scan.devices[6].signals.unhealthy_components = {{"hbm", "sram"}};
  const auto findings = check(host);
  ASSERT_THAT(findings, SizeIs(2));
  EXPECT_THAT(findings[0].evidence, ElementsAre(preflight::Evidence{
                                        "sys/class/neuron_device/neuron5/stats/hardware/sram_ecc_uncorrected", "3"}));
  EXPECT_THAT(findings[0].fix, HasSubstr("replace the instance"));
  EXPECT_THAT(findings[1].evidence,
              ElementsAre(preflight::Evidence{
                  "sys/class/neuron_device/neuron6/stats/hardware/health_status/unhealthy_components", "hbm, sram"}));
}

TEST(Preflight, UnknownTypeMattersOnlyWithNeuron) {
  CheckedHost host = sound_host("p5.48xlarge");
  host.scan.instance_type = "p9.48xlarge";
  EXPECT_EQ(finding_of(host, "instance_type_unknown").severity, preflight::Severity::info);
  host.scan.instance_type.clear();
  EXPECT_THAT(finding_of(host, "instance_type_unknown").sentence, HasSubstr("cannot be read"));
}

TEST(Preflight, ProblemsWithAFindingOfTheirOwnAreNotToldTwice) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.scan.problems = {{ProblemKind::lnc_file, "opt/aws/neuron/logical_nc_config", "no line"},
                        {ProblemKind::file, "sys/bus/pci/devices/x/vendor", "not a PCI id"}};
  const preflight::Finding finding = finding_of(host, "unreadable");
  EXPECT_THAT(finding.evidence, ElementsAre(preflight::Evidence{"sys/bus/pci/devices/x/vendor", "not a PCI id"}));
  host.scan.problems.assign(20, {ProblemKind::file, "a", "b"});
  EXPECT_THAT(finding_of(host, "unreadable").sentence, HasSubstr("20 values"));
  EXPECT_THAT(finding_of(host, "unreadable").evidence, SizeIs(8));
}

TEST(Preflight, NeighboursThatAreMissingBelongToThatFinding) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.scan.devices.erase(host.scan.devices.begin() + 3);
  const std::string path = "sys/class/neuron_device/neuron2/connected_devices";
  host.scan.devices[2].problems = {{ProblemKind::absent_neighbours, path, "3"}};
  EXPECT_THAT(codes_of(check(host)), ElementsAre("devices_missing"));
  EXPECT_THAT(all_evidence(finding_of(host, "devices_missing")), HasSubstr(path));
  host.scan.devices[2].problems = {{ProblemKind::absent_neighbours, path, "3,77"}};
  EXPECT_THAT(codes_of(check(host)), ElementsAre("devices_missing", "unreadable")) << "77 is another matter";
}

TEST(Preflight, UnreadableHealthIsToldOnce) {
  CheckedHost host = sound_host("trn1.32xlarge");
  for (const int index : {3, 4}) {
    auto& device = host.scan.devices[static_cast<std::size_t>(index)];
    device.signals.sram_ecc_uncorrected.reset();
    for (int i = 0; i < 8; ++i) {
      device.problems.push_back(
          {ProblemKind::health_file,
           "sys/class/neuron_device/neuron" + std::to_string(index) + "/stats/hardware/f" + std::to_string(i),
           "Is a directory"});
    }
  }
  const auto findings = check(host);
  ASSERT_THAT(codes_of(findings), ElementsAre("signal_unreadable"));
  EXPECT_THAT(findings[0].subjects, ElementsAre("neuron3", "neuron4"));
  EXPECT_EQ(findings[0].evidence.back(), (preflight::Evidence{"...", "and 10 more"}));
}

TEST(Preflight, AMachineWithNothingToServeIsNotToldAboutTheKubeletFirst) {
  CheckedHost host = sound_host("trn1.2xlarge");
  host.scan = {};
  host.facts.kubelet.itself = preflight::PathState::absent;
  EXPECT_THAT(codes_of(check(host)), ElementsAre("nothing_to_serve", "kubelet_dir_missing"));
  EXPECT_EQ(preflight::count_severity(check(host), preflight::Severity::error), 0);
}

TEST(Preflight, AddressesThatNoTableHasAreNotSaidToComeFromOne) {
  CheckedHost host = sound_host("trn1.32xlarge");
  host.scan.devices[0].bdf->origin = model::Origin::assumed;
  host.scan.devices[1].bdf.reset();
  const std::string seen = all_evidence(finding_of(host, "not_checked"));
  EXPECT_THAT(seen, HasSubstr("PCI address of 1 device: the driver did not answer, which is normal without privileges; "
                              "official tables are used"));
  EXPECT_THAT(seen, HasSubstr("no official table has it"));
}

TEST(Preflight, TextFitsTheTerminalAndCounts) {
  CheckedHost host = sound_host("trn1.32xlarge");
  EXPECT_EQ(preflight::preflight_text(check(host), preflight::describe_node(host.scan)),
            "nothing wrong: trn1.32xlarge, 16 devices, 8 EFA interfaces, driver 2.30.2.0\n");
  for (auto& efa : host.scan.efas) efa.p2p = "";
  host.facts.huge_pages.reserved_2m = 0;
  host.scan.devices[1].problems = {{ProblemKind::file, std::string(200, 'x'), std::string(200, 'y')}};
  const std::string text = preflight::preflight_text(check(host), preflight::describe_node(host.scan));
  EXPECT_THAT(text, ::testing::EndsWith("\n1 error, 2 warnings\n"));
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find("xxx") == std::string::npos && line.find("yyy") == std::string::npos) {
      EXPECT_LE(line.size(), 80U) << line;
    }
  }
}

TEST(Preflight, MissingCoresAreCounted) {
  CheckedHost host = sound_host("trn2.48xlarge");
  host.scan.devices[5].cores.erase(host.scan.devices[5].cores.begin() + 3);
  EXPECT_THAT(finding_of(host, "core_missing").sentence, ::testing::HasSubstr("1 core of neuron5 cannot be used"));
}

}  // namespace
}  // namespace neuron::test
