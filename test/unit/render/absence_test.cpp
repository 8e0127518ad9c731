#include "tools/neuron-ls/node_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/render/scans.h"

namespace neuron::ls {
namespace {

using ::testing::HasSubstr;

TEST(Absence, NothingToExplainWhenOneDeviceCanBeOpened) {
  model::HostScan scan = test::trn1_32xlarge();
  EXPECT_FALSE(explain_absence(scan, "/"));
  for (auto& device : scan.devices) device.node_present = device.index == 7;
  EXPECT_FALSE(explain_absence(scan, "/"));
}

TEST(Absence, DriverNotLoaded) {
  model::HostScan scan;
  scan.neuron_pci_functions = 16;
  const auto absence = explain_absence(scan, "/captured");
  ASSERT_TRUE(absence);
  EXPECT_THAT(absence->what, HasSubstr("16 Neuron PCI functions found"));
  EXPECT_THAT(absence->what, HasSubstr("/captured/sys/class/neuron_device"));
  EXPECT_THAT(absence->action, HasSubstr("modprobe neuron"));
  EXPECT_THAT(absence->action, HasSubstr("aws-neuronx-dkms"));
}

TEST(Absence, ContainerWithoutDeviceNode) {
  model::HostScan scan = test::inf2_xlarge();
  scan.devices[0].node_present = false;
  const auto absence = explain_absence(scan, "/");
  ASSERT_TRUE(absence);
  EXPECT_THAT(absence->what, HasSubstr("shows 1 device, but there is no device node /dev/neuron*"));
  EXPECT_THAT(absence->action, HasSubstr("aws.amazon.com/neuron"));
}

TEST(Absence, DriverWithoutDevices) {
  model::HostScan scan;
  scan.driver_version = "2.30.2.0";
  scan.neuron_pci_functions = 4;
  const auto absence = explain_absence(scan, "/");
  ASSERT_TRUE(absence);
  EXPECT_THAT(absence->what, HasSubstr("driver 2.30.2.0 is loaded, but shows no device"));
  EXPECT_THAT(absence->action, HasSubstr("dmesg"));
}

TEST(Absence, InstanceThatShouldHaveDevices) {
  model::HostScan scan;
  scan.instance_type = "trn1.32xlarge";
  const auto absence = explain_absence(scan, "/");
  ASSERT_TRUE(absence);
  EXPECT_THAT(absence->what, HasSubstr("trn1.32xlarge has 16 Neuron devices"));
}

TEST(Absence, ClassDirectoryThatMayNotBeRead) {
  const auto absence = explain_absence({}, "/", {.class_directory = true, .root_only_files = false});
  ASSERT_TRUE(absence);
  EXPECT_EQ(absence->what, "this user cannot read /sys/class/neuron_device");
  EXPECT_THAT(absence->action, HasSubstr("as root"));
}

TEST(Absence, OldDriversShowCoresToRootOnly) {
  model::HostScan scan = test::trn1_32xlarge();
  scan.driver_version = "2.27.4.0";
  const Refusals refused{.class_directory = false, .root_only_files = true};
  EXPECT_FALSE(explain_absence(scan, "/", refused)) << "the tables of the instance type know them";
  scan.devices[3].neighbours.reset();
  EXPECT_FALSE(explain_absence(scan, "/")) << "unknown, but nobody refused";
  const auto absence = explain_absence(scan, "/", refused);
  ASSERT_TRUE(absence);
  EXPECT_THAT(absence->what, HasSubstr("driver 2.27.4.0"));
  EXPECT_THAT(absence->action, HasSubstr("run it as root (required by drivers up to 2.27)"));
}

TEST(Absence, MachineWithoutNeuron) {
  model::HostScan scan;
  scan.instance_type = "m5.large\n";
  const auto absence = explain_absence(scan, "/");
  ASSERT_TRUE(absence);
  EXPECT_THAT(absence->what, HasSubstr("no Neuron device (instance type m5.large\\x0a)"));
  EXPECT_THAT(absence->action, HasSubstr("--root"));
}

}  // namespace
}  // namespace neuron::ls
