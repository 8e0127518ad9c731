#include "agent/health/kernel_errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "test/unit/core/make_host.h"

namespace neuron::health {
namespace {

using model::KernelErrorKind;
using model::KernelLogError;
using std::chrono::microseconds;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Lookback = KernelErrors::Lookback;

constexpr const char* kOfAws =
    "NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=i-0592464924bd45322 hostname=ip-172-31-61-252 nd-id=3 nc-id=1 "
    "serial-num=19FCDA00f5ff6eb9 action=TERMINATE_INSTANCE";

TEST(KernelRecords, AreAsTheKernelWritesThem) {
  const auto record = parse_kernel_record("3,70909,61453171554,-;neuron: text; more\n SUBSYSTEM=pci\n DEVICE=+pci:0\n");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->sequence, 70909U);
  EXPECT_EQ(record->time, microseconds(61453171554));
  EXPECT_EQ(record->text, "neuron: text; more");
  const auto with_caller = parse_kernel_record("12,18446744073709551615,1,c,caller=T123;");
  ASSERT_TRUE(with_caller);
  EXPECT_EQ(with_caller->sequence, UINT64_MAX);
  EXPECT_EQ(with_caller->text, "");
}

TEST(KernelRecords, AnythingElseIsNone) {
  for (const char* text : {"", ";", "3,1,2;text", "3,1,-2,-;text", "x,1,2,-;text", "3,,2,-;text", " DEVICE=+pci:0",
                           "3,18446744073709551616,2,-;text", "3,1,9223372036854775808,-;text", "3,1,2,-"}) {
    EXPECT_FALSE(parse_kernel_record(text)) << text;
  }
}

TEST(SyslogLines, HaveATimeAndPerhapsWhoSaidIt) {
  const auto record = parse_syslog_line("<3>[61453.171554] neuron: text");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->time, microseconds(61453171554));
  EXPECT_EQ(record->text, "neuron: text");
  EXPECT_EQ(parse_syslog_line("<12>[    0.000001][  T123] [x] y")->text, "[x] y");
  for (const char* text :
       {"", "<3>text", "<3>[x.1] t", "<3>[1.17] t", "[1.000000] t", "<>[1.000000] t", "<3>[99999999999.000000] t"}) {
    EXPECT_FALSE(parse_syslog_line(text)) << text;
  }
}

TEST(KernelLines, AllFieldsOfAnError) {
  for (const std::string before : {"", "2026-11-22T21:46:00Z ", "neuron:nrt: ", "first\\x0a"}) {
    const KernelLine line = parse_kernel_line(before + kOfAws + "\\x0a");
    ASSERT_EQ(line.kind, KernelLineKind::error) << before;
    EXPECT_EQ(line.error.kind, KernelErrorKind::sram);
    EXPECT_EQ(line.error.name, "SRAM_UNCORRECTABLE_ERROR");
    EXPECT_EQ(line.error.device, 3);
    EXPECT_EQ(line.error.core, 1);
    EXPECT_EQ(line.error.serial, "19fcda00f5ff6eb9");
    EXPECT_EQ(line.error.action, "TERMINATE_INSTANCE");
  }
}

TEST(KernelLines, AnErrorMayNameNoDevice) {
  const KernelLine line = parse_kernel_line("kernel: NEURON_HW_ERR=DMA_ERROR affecting neuron devices nc-id=1");
  ASSERT_EQ(line.kind, KernelLineKind::error);
  EXPECT_EQ(line.error.kind, KernelErrorKind::dma);
  EXPECT_EQ(line.error.device, std::nullopt);
  EXPECT_EQ(line.error.core, std::nullopt) << "of which device?";
}

TEST(KernelLines, Kinds) {
  const auto kind = [](const std::string& name) { return parse_kernel_line("NEURON_HW_ERR=" + name).error.kind; };
  EXPECT_EQ(kind("NC_UNCORRECTABLE_ERROR"), KernelErrorKind::core);
  EXPECT_EQ(kind("HBM_UNCORRECTABLE_ERROR"), KernelErrorKind::hbm);
  EXPECT_EQ(kind("HANG_ON_COLLECTIVES"), KernelErrorKind::collectives);
  EXPECT_EQ(kind("HBM_REPAIRABLE_UNCORRECTABLE_ERROR"), KernelErrorKind::hbm_repairable);
  EXPECT_EQ(kind("HBM_UNREPAIRABLE_ERROR"), KernelErrorKind::other);
  EXPECT_EQ(kind("SRAM_UNCORRECTABLE_ERROR_2"), KernelErrorKind::other);
}

TEST(KernelLines, WhatMakesNoSenseIsMalformed) {
  for (const std::string& rest : std::vector<std::string>{
           "", " nd-id=3", "sram", "A" + std::string(64, 'B'), "DMA_ERROR nd-id=", "DMA_ERROR nd-id=-1",
           "DMA_ERROR nd-id=3x", "DMA_ERROR nd-id=10000", "DMA_ERROR nd-id=3 nd-id=4", "DMA_ERROR nd-id=3 nc-id=32",
           "DMA_ERROR nd-id=3 serial-num=19fc", "DMA_ERROR nd-id=3 serial-num=19fcda00f5ff6eg9",
           "DMA_ERROR nd-id=3 action=rm", "DMA_ERROR nd-id=3 action=A action=B"}) {
    EXPECT_EQ(parse_kernel_line("NEURON_HW_ERR=" + rest).kind, KernelLineKind::malformed) << rest;
  }
}

TEST(KernelLines, OthersAreNothing) {
  for (const char* text :
       {"", "NEURON_HW_ERR", "xNEURON_HW_ERR=DMA_ERROR", "audit: a Neuron Driver Started with Version:2",
        "** BDF: 10:1b.0 => nd[x] (routing id: 5)", "=> nd[3] (routing id: 5)", "** BDF: ] (routing id: 3 => nd["}) {
    EXPECT_EQ(parse_kernel_line(text).kind, KernelLineKind::nothing) << text;
  }
}

TEST(KernelLines, BeginningsOfTheDriver) {
  EXPECT_EQ(parse_kernel_line("Neuron Driver Started with Version:2.30.2.0-abc at: 2026").kind,
            KernelLineKind::driver_started);
  const KernelLine found = parse_kernel_line("neuron:probe: ** BDF: 10:1b.0 => nd[12] (routing id: 5)");
  EXPECT_EQ(found.kind, KernelLineKind::device_found);
  EXPECT_EQ(found.device, 12);
}

// Records taken by an object in scans of a machine with 16 devices of 2 cores.
class KernelErrorsTest : public ::testing::Test {
 protected:
  KernelErrorsTest() : host_(test::scan_of("trn1.32xlarge")) {
    for (auto& device : host_.devices) device.serial = "19fcda00f5ff6eb" + std::to_string(device.index % 10);
  }
  void scan(const std::vector<std::string>& lines, Lookback lookback = Lookback::no, std::set<int> renewed = {}) {
    errors_.begin(host_.devices, std::move(renewed), lookback);
    for (const std::string& line : lines) errors_.take({0, microseconds(++time_), line});
    errors_.end();
  }
  static std::string error(int device, const std::string& more = "") {
    return "NEURON_HW_ERR=DMA_ERROR nd-id=" + std::to_string(device) + more;
  }

  model::HostScan host_;
  KernelErrors errors_;
  int time_ = 0;
};

TEST_F(KernelErrorsTest, CountsLinesOfOneKindAndPlaceTogether) {
  scan({error(3), "noise", error(3, " nc-id=1"), "NEURON_HW_ERR=DMA_ERROR", error(3)}, Lookback::yes);
  scan({error(3)});
  const auto errors = errors_.errors();
  ASSERT_THAT(errors, SizeIs(3));
  EXPECT_EQ(errors[0].device, std::nullopt);
  EXPECT_EQ(errors[1].device, 3);
  EXPECT_EQ(errors[1].core, std::nullopt);
  EXPECT_EQ(errors[1].lines, 3U);
  EXPECT_EQ(errors[1].first_at, microseconds(1));
  EXPECT_EQ(errors[1].last_at, microseconds(6));
  EXPECT_EQ(errors[2].core, 1);
}

// Whoever has a device node may have written the first of them.
TEST_F(KernelErrorsTest, NoEarlierLineHidesThatTheInstanceHasToBeReplaced) {
  const std::string weird = "NEURON_HW_ERR=WEIRD nd-id=2",
                    grave = "NEURON_HW_ERR=PE_ERROR nd-id=2 action=TERMINATE_INSTANCE";
  scan({weird, grave, weird});
  ASSERT_THAT(errors_.errors(), SizeIs(1));
  EXPECT_EQ(errors_.errors()[0].action, "TERMINATE_INSTANCE");
  EXPECT_EQ(errors_.errors()[0].name, "PE_ERROR");
  EXPECT_EQ(errors_.errors()[0].lines, 3U);
}

TEST_F(KernelErrorsTest, HoldsNothingAgainstWhatIsNotThere) {
  scan({error(16), error(3, " nc-id=2"), error(3, " serial-num=0000000000000001"), error(3, " nc-id=x")},
       Lookback::yes);
  EXPECT_THAT(errors_.errors(), IsEmpty());
  EXPECT_EQ(errors_.ignored_lines(), 4U);
  scan({error(3, " serial-num=19FCDA00F5FF6EB3")});
  EXPECT_THAT(errors_.errors(), SizeIs(1));
}

// A device off the bus reads ones instead of its serial number; the driver still logs the true one.
TEST_F(KernelErrorsTest, ASerialOfOnesIsNoOtherChip) {
  host_.devices[3].serial = model::kSerialOfOnes;
  scan({error(3, " serial-num=19fcda00f5ff6eb3 action=TERMINATE_INSTANCE"), error(5, " serial-num=FFFFFFFFFFFFFFFF")});
  EXPECT_EQ(errors_.ignored_lines(), 0U);
  EXPECT_THAT(errors_.errors(), ElementsAre(Field(&KernelLogError::device, 3), Field(&KernelLogError::device, 5)));
}

TEST_F(KernelErrorsTest, AFloodOfLinesTakesNoMemory) {
  for (int i = 0; i < 3; ++i) {
    std::vector<std::string> lines;
    for (int n = 0; n < 10000; ++n) {
      lines.push_back("NEURON_HW_ERR=A" + std::to_string(n) + " nd-id=" + std::to_string(n) +
                      " nc-id=" + std::to_string(n % 32) + " action=B" + std::to_string(n));
    }
    scan(lines);
  }
  EXPECT_THAT(errors_.errors(), SizeIs(2)) << "one for each of the devices that have such a core";
}

TEST_F(KernelErrorsTest, WhatWasBeforeTheDriverStartedIsOfThePast) {
  scan({error(3), "NEURON_HW_ERR=DMA_ERROR", "Neuron Driver Started with Version:2.30", error(5), error(7),
        "neuron: ** BDF: 10:1b.0 => nd[7] (routing id: 5)"},
       Lookback::yes);
  EXPECT_THAT(errors_.errors(), ElementsAre(Field(&KernelLogError::device, 5)));
}

TEST_F(KernelErrorsTest, NobodyTakesAnErrorBackByALine) {
  scan({error(3)}, Lookback::yes);
  scan({"Neuron Driver Started with Version:2.30", "** BDF: 10:1b.0 => nd[3] (routing id: 5)"});
  EXPECT_THAT(errors_.errors(), SizeIs(1)) << "no device has registered anew";
}

TEST_F(KernelErrorsTest, ADriverThatIsLoadedAgainBeginsAnewAtItsLine) {
  scan({error(3), error(5)}, Lookback::yes);
  scan({error(3), "Neuron Driver Started with Version:2.30", error(5), "Neuron Driver Started with Version:2.30"},
       Lookback::no, {3, 5});
  EXPECT_THAT(errors_.errors(), ElementsAre(Field(&KernelLogError::device, 5))) << "and only once";
  EXPECT_EQ(errors_.errors()[0].lines, 1U);
}

TEST_F(KernelErrorsTest, ADeviceThatRegistersAnewBeginsAnewWhereTheLineIsLost) {
  scan({error(3), error(5), error(6)}, Lookback::yes);
  scan({error(5), error(6), "** BDF: 10:1b.0 => nd[6] (routing id: 5)"}, Lookback::no, {3, 5, 6});
  EXPECT_THAT(errors_.errors(), ElementsAre(Field(&KernelLogError::device, 5))) << "said in the scan that saw it new";
}

TEST_F(KernelErrorsTest, WhatNamesNoDeviceEndsWhenAllRegisterAnew) {
  scan({"NEURON_HW_ERR=DMA_ERROR"}, Lookback::yes);
  scan({}, Lookback::no, {3});
  EXPECT_THAT(errors_.errors(), SizeIs(1));
  std::set<int> all;
  for (const auto& device : host_.devices) all.insert(device.index);
  scan({}, Lookback::no, all);
  EXPECT_THAT(errors_.errors(), IsEmpty());
}

TEST_F(KernelErrorsTest, AnotherChipInItsPlaceHasItsOwnErrors) {
  scan({error(3, " serial-num=19fcda00f5ff6eb3 action=A"), error(3)}, Lookback::yes);
  host_.devices[3].serial = "00000000000000ff";
  scan({error(3, " serial-num=00000000000000ff action=B")});
  ASSERT_THAT(errors_.errors(), SizeIs(1));
  EXPECT_EQ(errors_.errors()[0].lines, 1U);
  EXPECT_EQ(errors_.errors()[0].action, "B");
}

}  // namespace
}  // namespace neuron::health
