#include "tools/render/node_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/render/scans.h"

namespace neuron::render {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int> pids_of(const DeviceView& device) {
  std::vector<int> pids;
  for (const ProcessView& process : device.processes) pids.push_back(process.pid);
  return pids;
}

TEST(NodeView, KeepsHostNumbersWhenEveryDeviceNodeIsThere) {
  model::HostScan scan = test::trn1_32xlarge();
  scan.devices.erase(scan.devices.begin() + 3);  // a device that is gone leaves a hole, it does not renumber the others
  const NodeView view = test::view_of(scan);
  ASSERT_EQ(view.devices.size(), 15U);
  EXPECT_EQ(view.devices[3].index, 4);
  EXPECT_THAT(view.devices[3].core_ids.value(), ElementsAre(8, 9));
}

TEST(NodeView, NumbersDevicesAndCoresFromZeroWhenDeviceNodesAreMissing) {
  model::HostScan scan = test::trn2_48xlarge();
  for (auto& device : scan.devices) device.node_present = device.index == 9 || device.index == 13;
  const NodeView view = test::view_of(scan);
  ASSERT_EQ(view.devices.size(), 2U);
  EXPECT_EQ(view.devices[1].index, 1);
  EXPECT_EQ(view.devices[1].host_index, 13);
  EXPECT_THAT(view.devices[1].core_ids.value(), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(view.devices[1].neighbours, ElementsAre(12, 1, 9, 14));
}

TEST(NodeView, CoreIdsAfterADeviceOfUnknownSizeAreUnknown) {
  model::HostScan scan = test::trn2_48xlarge();
  scan.devices[0].physical_cores.reset();
  scan.devices[5].node_present = false;
  const NodeView view = test::view_of(scan);
  EXPECT_FALSE(view.devices[0].core_ids);
  EXPECT_FALSE(view.devices[1].core_ids);
}

TEST(NodeView, LeavesOutProcessesWithoutRuntimeUnlessAsked) {
  const model::HostScan scan = test::inf1_6xlarge_busy();
  EXPECT_THAT(pids_of(test::view_of(scan).devices[0]), ElementsAre(23518, 23531));
  EXPECT_THAT(pids_of(test::view_of(scan).devices[3]), IsEmpty());
  ViewRequest all;
  all.filter = ProcessFilter::all;
  EXPECT_THAT(pids_of(test::view_of(scan, all).devices[0]), ElementsAre(23518, 23531, 23764, 23829));
}

// Known from proc: what it holds nobody can say, so it may hold a core.
TEST(NodeView, AProcessOfWhichNothingIsKnownCounts) {
  model::HostScan scan = test::inf1_6xlarge_busy();
  scan.devices[3].processes->emplace_back().pid = 17;
  EXPECT_THAT(pids_of(test::view_of(scan).devices[3]), ElementsAre(17));
}

TEST(NodeView, ShortensCommandsToTheColumn) {
  ViewRequest request;
  request.commands = test::inf1_commands();
  const model::HostScan scan = test::inf1_6xlarge_busy();
  EXPECT_EQ(test::view_of(scan, request).devices[0].processes[0].command, "neuron-app01 infer --input-data-direc...");
  request.command_width = kWideCommandWidth;
  EXPECT_EQ(test::view_of(scan, request).devices[0].processes[0].command,
            "neuron-app01 infer --input-data-directory ~/my_input_data --inference-count 5...");
}

TEST(NodeView, ShowsTheLogicalCoreConfigOnlyWhereThereIsAChoice) {
  EXPECT_EQ(test::view_of(test::trn2_48xlarge()).lnc, 2);
  EXPECT_FALSE(test::view_of(test::trn1_32xlarge()).lnc);
}

TEST(NodeView, UnaskedDriverMeansNoProcesses) {
  model::HostScan scan = test::inf2_xlarge();
  scan.devices[0].processes.reset();
  EXPECT_THAT(test::view_of(scan).devices[0].processes, IsEmpty());
}

}  // namespace
}  // namespace neuron::render
