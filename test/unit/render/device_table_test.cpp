#include "tools/render/node_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/render/golden.h"
#include "test/unit/render/scans.h"

namespace neuron::render {
namespace {

using ::testing::Contains;
using ::testing::Not;

std::string default_text(const NodeView& view) {
  return header_lines(view) + device_table(view, default_columns(view));
}

// The columns that tools of SDK 2.12 printed, to compare with the samples that exist of them.
const std::vector<Column> kSdk212 = {Column::device, Column::cores, Column::memory,  Column::connected,
                                     Column::bdf,    Column::pid,   Column::command, Column::runtime_version};

// A busy view of inf1.6xlarge whose applications have the runtime version of the published sample.
NodeView inf1_view(ProcessFilter filter) {
  ViewRequest request;
  request.commands = test::inf1_commands();
  request.filter = filter;
  NodeView view = test::view_of(test::inf1_6xlarge_busy(), request);
  for (DeviceView& device : view.devices) {
    for (ProcessView& process : device.processes) {
      if (process.pid < 23700) process.runtime_version = "2.0.0";
    }
  }
  return view;
}

TEST(DeviceTable, Trn1MatchesThePublishedSample) {
  test::expect_golden("trn1_32xlarge.txt", default_text(test::view_of(test::trn1_32xlarge())));
}

TEST(DeviceTable, Inf1WithProcessesMatchesThePublishedSample) {
  test::expect_golden("inf1_6xlarge_sdk212.txt", device_table(inf1_view(ProcessFilter::with_runtime), kSdk212));
}

TEST(DeviceTable, Inf1WithAllProcessesMatchesThePublishedSample) {
  test::expect_golden("inf1_6xlarge_sdk212_all.txt", device_table(inf1_view(ProcessFilter::all), kSdk212));
}

TEST(DeviceTable, Inf2MatchesThePublishedSample) {
  const std::vector<Column> columns = {Column::device, Column::cores, Column::memory, Column::short_bdf};
  test::expect_golden("inf2_xlarge_sdk212.txt", device_table(test::view_of(test::inf2_xlarge()), columns));
}

TEST(DeviceTable, Inf1WithProcessesInTodaysLayout) {
  test::expect_golden("inf1_6xlarge_busy.txt", default_text(inf1_view(ProcessFilter::with_runtime)));
}

TEST(DeviceTable, WideShowsEightyCharacters) {
  ViewRequest request;
  request.commands = test::inf1_commands();
  request.command_width = kWideCommandWidth;
  test::expect_golden("inf1_6xlarge_wide.txt", default_text(test::view_of(test::inf1_6xlarge_busy(), request)));
}

TEST(DeviceTable, Trn2HasTheLogicalCoreHeader) {
  test::expect_golden("trn2_48xlarge.txt", default_text(test::view_of(test::trn2_48xlarge())));
}

TEST(DeviceTable, SingleIdleDeviceHasNoConnectedColumn) {
  test::expect_golden("inf2_xlarge.txt", default_text(test::view_of(test::inf2_xlarge())));
}

TEST(DeviceTable, UnknownValuesAreShownAsSuch) {
  test::expect_golden("inf2_48xlarge_bare.txt", default_text(test::view_of(test::inf2_48xlarge_bare())));
}

TEST(DeviceTable, OneDeviceInAContainerWithAHostProcess) {
  model::HostScan scan = test::trn2_48xlarge();
  for (auto& device : scan.devices) device.node_present = device.index == 13;
  scan.devices[13].processes = {{model::Process{4290, 0x3, 16384, 1782579}}};
  const NodeView view = test::view_of(scan);
  EXPECT_THAT(default_columns(view), Not(Contains(Column::command)));
  test::expect_golden("container_one_device.txt", default_text(view));
}

TEST(DeviceTable, ShortBdfKeepsADomainThatIsNotZero) {
  model::HostScan scan = test::inf2_xlarge();
  scan.devices[0].bdf->value.domain = 1;
  EXPECT_THAT(device_table(test::view_of(scan), {Column::short_bdf}), ::testing::HasSubstr("| 0001:00:1f.0 |"));
}

TEST(DeviceTable, CoreIdsWithAGapAreAList) {
  NodeView view = test::view_of(test::inf2_xlarge());
  view.devices[0].core_ids = {0, 1, 4};
  EXPECT_THAT(device_table(view, {Column::core_ids}), ::testing::HasSubstr("| 0-1,4    |"));
}

}  // namespace
}  // namespace neuron::render
