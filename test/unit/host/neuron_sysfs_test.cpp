#include "agent/host/neuron_sysfs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "test/unit/host/small_host.h"

namespace neuron::host {
namespace {

using model::DriverLayout;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kDevice = "sys/devices/virtual/neuron_device/neuron0/";

class NeuronSysfs : public ::testing::Test {
 protected:
  model::NeuronDevice read(Generation generation) {
    write_device(tree_, 0, generation);
    return read();
  }
  model::NeuronDevice read() {
    auto reader = NeuronDeviceReader::open(tree_.root(), 0, "2.30.2.0");
    EXPECT_TRUE(reader);
    auto device = read_whole(*reader);
    layout_ = reader->layout();
    EXPECT_EQ(read_whole(*reader), device);  // a second read, of known files only, sees the same
    EXPECT_EQ(reader->layout(), layout_);
    return device;
  }
  static model::NeuronDevice read_whole(NeuronDeviceReader& reader) {
    auto device = reader.read();
    reader.read_shown(device);
    return device;
  }
  void write(const std::string& file, std::string_view text) { tree_.write(kDevice + file, text); }

  TempTree tree_;
  DriverLayout layout_ = DriverLayout::none;
};

TEST_F(NeuronSysfs, Driver230) {
  const auto device = read(Generation::trn2_2_30);
  EXPECT_EQ(layout_, DriverLayout::health_v2);
  EXPECT_EQ(device.family, model::Family::trainium2);
  EXPECT_EQ(device.arch, "NDv3");
  EXPECT_EQ(device.serial, "19fcda00f5ff6eb0");
  EXPECT_EQ(device.physical_cores->value, 2);
  EXPECT_THAT(device.neighbours->value, IsEmpty());
  EXPECT_EQ(device.signals.sram_ecc_uncorrected, 0U);
  EXPECT_EQ(device.signals.sram_ecc_corrected, 5U);
  EXPECT_EQ(device.signals.heartbeat, 17U);
  EXPECT_EQ(device.signals.unreachable, false);
  EXPECT_THAT(device.signals.unhealthy_components.value(), IsEmpty());
  EXPECT_EQ(device.signals.hbm_ecc_errors, std::nullopt);
  EXPECT_EQ(device.signals.reset_state, 1);
  ASSERT_THAT(device.cores, SizeIs(2));
  EXPECT_EQ(device.cores[1].physical_index, 1);
  EXPECT_EQ(device.cores[1].device_memory_bytes, 1024U);
  EXPECT_EQ(device.cores[1].hw_repairable_hbm_ue_error, std::nullopt);  // not in this tree
  EXPECT_THAT(device.problems, IsEmpty());
}

TEST_F(NeuronSysfs, Driver228) {
  const auto device = read(Generation::trn2_2_28);
  EXPECT_EQ(layout_, DriverLayout::health_v1);
  EXPECT_EQ(device.signals.hbm_ecc_errors, 2U);
  EXPECT_EQ(device.signals.hw_error_events, 2U);
  EXPECT_EQ(device.signals.unreachable, std::nullopt);
  EXPECT_EQ(device.signals.sram_ecc_corrected, std::nullopt);
}

TEST_F(NeuronSysfs, Driver227AndInf1) {
  read(Generation::trn1_2_27);
  EXPECT_EQ(layout_, DriverLayout::stats);
  TempTree other;
  write_device(other, 0, Generation::inf1_2_24);
  auto reader = NeuronDeviceReader::open(other.root(), 0, "2.30.2.0").value();
  const auto inf1 = reader.read();
  EXPECT_EQ(reader.layout(), DriverLayout::stats);
  EXPECT_EQ(inf1.serial, std::nullopt);
  EXPECT_EQ(inf1.signals.sram_ecc_uncorrected, std::nullopt);
  EXPECT_EQ(inf1.cores[0].hw_error, 0U);
  EXPECT_THAT(inf1.problems, IsEmpty());
}

TEST_F(NeuronSysfs, BareDriver) {
  const auto device = read(Generation::bare);
  EXPECT_EQ(layout_, DriverLayout::bare);
  EXPECT_EQ(device.physical_cores->value, 2);
  EXPECT_THAT(device.cores, IsEmpty());
}

TEST_F(NeuronSysfs, MovedFilesAreUnknownNeverZero) {
  const auto device = read(Generation::moved);
  EXPECT_EQ(layout_, DriverLayout::unknown);
  EXPECT_EQ(device.signals, model::DeviceSignals{});
  EXPECT_EQ(device.physical_cores, std::nullopt);
  EXPECT_EQ(device.neighbours, std::nullopt);
  EXPECT_THAT(device.problems, IsEmpty());
  write("core_count", "8");  // the top stays, all else moved: still not the layout of an old driver
  EXPECT_EQ(read().physical_cores->value, 8);
  EXPECT_EQ(layout_, DriverLayout::unknown);
}

TEST_F(NeuronSysfs, CoreFoldersStandInForCoreCount) {
  write_device(tree_, 0, Generation::trn1_2_27);
  write("info/architecture/device_name", "Trainium1\n");
  tree_.remove(std::string(kDevice) + "core_count");
  EXPECT_EQ(read().physical_cores->value, 2);
  write("core_count", "many");
  const auto device = read();
  EXPECT_EQ(device.physical_cores->value, 2);
  EXPECT_THAT(sentences(device.problems), ElementsAre(HasSubstr("neuron0/core_count: not a number")));
}

TEST_F(NeuronSysfs, AnUnknownDeviceNameIsQuoted) {
  write_device(tree_, 0, Generation::trn2_2_30);
  write("info/architecture/device_name", "Trainium9\n");
  const auto device = read();
  EXPECT_EQ(device.family, std::nullopt);
  EXPECT_THAT(sentences(device.problems), ElementsAre(HasSubstr("not a known device name: \"Trainium9\"")));
}

TEST_F(NeuronSysfs, AllOnesReachTheHealthPolicy) {
  write_device(tree_, 0, Generation::trn2_2_30);
  write("stats/hardware/sram_ecc_uncorrected", "65535\n");
  const auto device = read();
  EXPECT_EQ(device.signals.sram_ecc_uncorrected, 65535U);
  EXPECT_THAT(device.problems, IsEmpty());
}

TEST_F(NeuronSysfs, ASerialOfOnesReachesTheHealthPolicy) {
  write_device(tree_, 0, Generation::trn2_2_30);
  write("info/serial_number", "ffffffffffffffff\n");
  const auto device = read();
  EXPECT_TRUE(device.serial_all_ones);
  EXPECT_THAT(device.problems, IsEmpty());
  write("info/serial_number", "19fcda00f5ff6eb0\n");
  EXPECT_FALSE(read().serial_all_ones);
}

TEST_F(NeuronSysfs, BadSignalsAreAbsentAndNamed) {
  write_device(tree_, 0, Generation::trn2_2_30);
  write("stats/hardware/sram_ecc_uncorrected", "65536\n");
  write("stats/hardware/mem_ecc_uncorrected", "garbage\x01");
  write("stats/hardware/mem_ecc_corrected", "");
  write("stats/hardware/sram_ecc_corrected", std::string(100'000, '1'));
  tree_.remove(std::string(kDevice) + "stats/hardware/mem_ecc_repairable_uncorrected");
  tree_.folder(std::string(kDevice) + "stats/hardware/mem_ecc_repairable_uncorrected");
  tree_.fifo(std::string(kDevice) + "stats/hardware/health_status/healthcheck_heartbeat");
  write("neuron_core1/stats/status/hw_error/total", "-1\n");
  const auto device = read();
  EXPECT_EQ(layout_, DriverLayout::health_v2);
  EXPECT_EQ(device.signals.sram_ecc_uncorrected, std::nullopt);
  EXPECT_EQ(device.signals.mem_ecc_uncorrected, std::nullopt);
  EXPECT_EQ(device.signals.mem_ecc_corrected, std::nullopt);
  EXPECT_EQ(device.signals.sram_ecc_corrected, std::nullopt);
  EXPECT_EQ(device.signals.mem_ecc_repairable_uncorrected, std::nullopt);
  EXPECT_EQ(device.signals.heartbeat, std::nullopt);
  EXPECT_EQ(device.cores[1].hw_error, std::nullopt);
  EXPECT_EQ(device.cores[0].hw_error, 0U);
  EXPECT_THAT(device.problems, SizeIs(7));
  EXPECT_THAT(sentences(device.problems), Each(HasSubstr("sys/class/neuron_device/neuron0/")));
  EXPECT_THAT(sentences(device.problems), Each(::testing::Not(HasSubstr("\x01"))));
}

// Whoever decides on a problem goes by its kind and its path, never by the words.
TEST_F(NeuronSysfs, ProblemsAreOfAKind) {
  write_device(tree_, 0, Generation::trn2_2_30);
  write("info/serial_number", "x: y\n");
  write("stats/hardware/sram_ecc_uncorrected", "x: y\n");
  write("neuron_core0/stats/memory_usage/device_mem/total", "x: y\n");
  write("neuron_core1/stats/status/hw_error/total", "x: y\n");
  std::map<std::string, model::ProblemKind> kinds;
  for (const model::ReadProblem& problem : read().problems) {
    kinds[problem.path] = problem.kind;
    EXPECT_THAT(problem.detail, HasSubstr("\"x: y\"")) << problem.path;
    EXPECT_EQ(sentence(problem), problem.path + ": " + problem.detail);
  }
  const std::string folder = "sys/class/neuron_device/neuron0/";
  EXPECT_EQ(kinds, (std::map<std::string, model::ProblemKind>{
                       {folder + "info/serial_number", model::ProblemKind::file},
                       {folder + "stats/hardware/sram_ecc_uncorrected", model::ProblemKind::health_file},
                       {folder + "neuron_core0/stats/memory_usage/device_mem/total", model::ProblemKind::file},
                       {folder + "neuron_core1/stats/status/hw_error/total", model::ProblemKind::health_file}}));
}

TEST_F(NeuronSysfs, ProblemsAreBounded) {
  write_device(tree_, 0, Generation::trn2_2_30);
  for (const char* core : {"neuron_core0", "neuron_core1"}) {
    for (const health::CoreSignal& file : health::core_signals())
      write(std::string(core) + '/' + std::string(file.path), "x");
  }
  EXPECT_THAT(read().problems, SizeIs(8));
}

TEST_F(NeuronSysfs, NeighboursKeepTheirOrderWithoutTheDeviceItself) {
  write_device(tree_, 0, Generation::trn2_2_30);
  write("connected_devices", "12, 3, 0, 3, 1\n");
  const auto device = read();
  EXPECT_THAT(device.neighbours->value, ElementsAre(12, 3, 3, 1));
  EXPECT_THAT(sentences(device.problems),
              ElementsAre(HasSubstr("names the device itself"), HasSubstr("names a device twice")));
  std::string many = "1";
  for (int i = 0; i < 65535; ++i) many += ", 1";
  write("connected_devices", many);
  EXPECT_EQ(read().neighbours, std::nullopt);
}

TEST_F(NeuronSysfs, AVanishedFileIsAProblemNotASilence) {
  write_device(tree_, 0, Generation::trn2_2_30);
  auto reader = NeuronDeviceReader::open(tree_.root(), 0, "2.30.2.0").value();
  EXPECT_THAT(reader.read().problems, IsEmpty());
  tree_.remove(std::string(kDevice) + "stats/hardware/sram_ecc_uncorrected");
  const auto device = reader.read();
  EXPECT_EQ(device.signals.sram_ecc_uncorrected, std::nullopt);
  EXPECT_THAT(sentences(device.problems), ElementsAre(HasSubstr("sram_ecc_uncorrected")));
}

TEST_F(NeuronSysfs, SignalsFollowTheMachine) {
  write_device(tree_, 0, Generation::trn2_2_30);
  auto reader = NeuronDeviceReader::open(tree_.root(), 0, "2.30.2.0").value();
  EXPECT_EQ(reader.read().signals.mem_ecc_uncorrected, 0U);
  write("stats/hardware/mem_ecc_uncorrected", "3\n");
  write("stats/hardware/health_status/unhealthy_components", "device_unreachable\n");
  const auto device = reader.read();
  EXPECT_EQ(device.signals.mem_ecc_uncorrected, 3U);
  EXPECT_EQ(device.signals.unreachable, true);
  EXPECT_EQ(device.signals.unhealthy_components, std::nullopt);
}

TEST_F(NeuronSysfs, EntriesThatAreNoDeviceDoNotOpen) {
  tree_.write("sys/class/neuron_device/neuron0", "1\n");
  tree_.link("sys/class/neuron_device/neuron1", "neuron1");
  EXPECT_FALSE(NeuronDeviceReader::open(tree_.root(), 0, "2.30.2.0"));
  EXPECT_FALSE(NeuronDeviceReader::open(tree_.root(), 1, "2.30.2.0"));
  EXPECT_FALSE(NeuronDeviceReader::open(tree_.root(), 2, "2.30.2.0"));
}

TEST_F(NeuronSysfs, FewerFoldersThanTheChipHasCoresAreNoCount) {
  write_device(tree_, 0, Generation::trn1_2_27);  // a Trainium2, of which two cores are shown
  tree_.remove(std::string(kDevice) + "core_count");
  const auto device = read();
  EXPECT_EQ(device.physical_cores, std::nullopt) << "numbers of the cores behind would shift";
  EXPECT_THAT(device.cores, SizeIs(2));
}

// A driver that is still making its files when the device is first seen.
TEST_F(NeuronSysfs, WhatComesLaterIsFound) {
  tree_.write(std::string(kDevice) + "dev", "240:0\n");
  tree_.link("sys/class/neuron_device/neuron0", "../../devices/virtual/neuron_device/neuron0");
  auto reader = NeuronDeviceReader::open(tree_.root(), 0, "2.30.2.0").value();
  EXPECT_EQ(reader.read().signals, model::DeviceSignals{});
  EXPECT_EQ(reader.layout(), DriverLayout::unknown);
  write("core_count", "8");
  write("info/architecture/device_name", "Trainium2\n");
  write("neuron_core0/stats/status/hw_error/total", "0\n");
  write("stats/hardware/sram_ecc_uncorrected", "0\n");
  auto device = reader.read();
  EXPECT_EQ(device.family, model::Family::trainium2);
  EXPECT_EQ(device.physical_cores->value, 8);
  ASSERT_THAT(device.cores, SizeIs(1));
  EXPECT_EQ(device.cores[0].hw_nc_ue_error, std::nullopt);
  EXPECT_EQ(device.signals.sram_ecc_uncorrected, 0U);
  EXPECT_EQ(device.serial, std::nullopt);

  write_device(tree_, 0, Generation::trn2_2_30);  // two cores
  write("stats/hardware/mem_ecc_uncorrected", "3\n");
  device = reader.read();
  ASSERT_THAT(device.cores, SizeIs(2));
  EXPECT_EQ(device.cores[0].hw_nc_ue_error, 0U);
  EXPECT_EQ(device.signals.mem_ecc_uncorrected, 3U);
  EXPECT_EQ(device.signals.heartbeat, 17U);
  EXPECT_EQ(device.serial, "19fcda00f5ff6eb0");
  EXPECT_EQ(reader.layout(), DriverLayout::health_v2);
  EXPECT_THAT(device.problems, IsEmpty());
  tree_.remove(std::string(kDevice) + "neuron_core1");
  EXPECT_THAT(reader.read().cores, SizeIs(1)) << "and what goes is gone";
}

TEST_F(NeuronSysfs, ADriverThatNeverHasAFileIsNotAskedForItAgain) {
  write_device(tree_, 0, Generation::trn1_2_27);
  write("info/architecture/device_name", "Trainium1\n");
  auto reader = NeuronDeviceReader::open(tree_.root(), 0, "2.27.4.0").value();
  (void)reader.read();
  write("stats/hardware/health_status/unhealthy_components", "hbm\n");
  write("stats/hardware/sram_ecc_corrected", "1\n");
  const auto device = reader.read();
  EXPECT_EQ(device.signals.unhealthy_components, std::nullopt);
  EXPECT_EQ(device.signals.sram_ecc_corrected, std::nullopt);
  auto unnumbered = NeuronDeviceReader::open(tree_.root(), 0, "2.x.8072.0").value();
  EXPECT_EQ(unnumbered.read().signals.sram_ecc_corrected, 1U);
}

}  // namespace
}  // namespace neuron::host
