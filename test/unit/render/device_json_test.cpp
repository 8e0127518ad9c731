#include "tools/render/node_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/render/golden.h"
#include "test/unit/render/scans.h"

namespace neuron::render {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(DeviceJson, Trn2HasEveryKeyInTheOfficialOrder) {
  model::HostScan scan = test::trn2_48xlarge();
  scan.devices.resize(2);
  scan.devices[0].processes = {{model::Process{113985, 0x1, 1, 1}}};
  ViewRequest request;
  request.commands[113985] = "neuron-bench exec --run-as-cc-neff --another-long-option";
  test::expect_golden("trn2_two_devices.json", device_json(test::view_of(scan, request)));
}

TEST(DeviceJson, SingleDeviceHasNullNeighboursAndStringNumaNode) {
  test::expect_golden("inf2_xlarge.json", device_json(test::view_of(test::inf2_xlarge())));
}

TEST(DeviceJson, UnknownValuesAreNeitherZeroNorMinusOne) {
  model::HostScan scan = test::inf2_48xlarge_bare();
  scan.devices.resize(1);
  scan.devices[0].physical_cores.reset();
  test::expect_golden("unknown_device.json", device_json(test::view_of(scan)));
}

TEST(DeviceJson, NoDevicesIsAnEmptyArrayWithoutNewline) {
  EXPECT_EQ(device_json(NodeView{}), "[]");
}

TEST(DeviceJson, UnresolvedCommandIsEmptyAndInvalidUtf8IsReplaced) {
  NodeView view = test::view_of(test::inf2_xlarge());
  view.devices[0].processes = {{7, "", "NA"}, {8, "\xc3(", "NA"}};
  EXPECT_THAT(device_json(view), HasSubstr("\"command\": \"\""));
  EXPECT_THAT(device_json(view), HasSubstr("\xef\xbf\xbd"));
}

TEST(DeviceJson, InstanceKeysAreLeftOutWhenUnknown) {
  EXPECT_THAT(device_json(test::view_of(test::inf2_48xlarge_bare())), Not(HasSubstr("instance_")));
}

}  // namespace
}  // namespace neuron::render
