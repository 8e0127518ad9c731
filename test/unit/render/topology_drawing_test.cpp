#include "tools/render/node_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/render/golden.h"
#include "test/unit/render/scans.h"
#include "tools/render/node_tables.h"

namespace neuron::render {
namespace {

std::string with_short_table(const model::HostScan& scan) {
  const NodeView view = test::view_of(scan);
  return header_lines(view) + device_table(view, topology_columns(view)) + draw_topology(view);
}

// Devices 0..n-1 with the given links and nothing else.
NodeView linked(const std::vector<std::vector<int>>& links) {
  NodeView view;
  for (std::size_t i = 0; i < links.size(); ++i) {
    DeviceView device;
    device.index = device.host_index = static_cast<int>(i);
    device.neighbours = links[i];
    view.devices.push_back(device);
  }
  return view;
}

TEST(TopologyDrawing, ChainMatchesThePublishedSample) {
  test::expect_golden("inf1_6xlarge_topology.txt", with_short_table(test::inf1_6xlarge_busy()));
}

TEST(TopologyDrawing, TorusMatchesThePublishedSampleInBothNeighbourOrders) {
  test::expect_golden("torus.txt", draw_topology(test::view_of(test::trn1_32xlarge())));
  test::expect_golden("torus.txt", draw_topology(test::view_of(test::trn2_48xlarge())));
}

TEST(TopologyDrawing, TorusKeepsItsShapeWhenADeviceIsMissing) {
  model::HostScan scan = test::trn1_32xlarge();
  scan.devices.erase(scan.devices.begin() + 6);
  test::expect_golden("torus_missing.txt", draw_topology(test::view_of(scan)));
}

TEST(TopologyDrawing, RingWrapsAround) {
  test::expect_golden("ring.txt", draw_topology(test::view_of(test::inf2_48xlarge_bare())));
}

TEST(TopologyDrawing, BrokenRingIsAChainFromItsLowerEnd) {
  model::HostScan scan = test::inf2_48xlarge_bare();
  scan.devices.erase(scan.devices.begin() + 3, scan.devices.begin() + 9);
  EXPECT_EQ(draw_topology(test::view_of(scan)),
            "\nNeuron Device Topology\n\n  [ 2 ]◄––►[ 1 ]◄––►[ 0 ]◄––►[11 ]◄––►[10 ]◄––►[ 9 ]\n");
}

TEST(TopologyDrawing, DevicesBehindASwitchStandAroundIt) {
  NodeView view = test::view_of(test::trn2_48xlarge());  // the driver lists a torus there, which is no link
  view.switched = true;
  test::expect_golden("switched.txt", draw_topology(view));
  view.devices.resize(4);
  test::expect_golden("switched_four.txt", draw_topology(view));
}

TEST(TopologyDrawing, UnlinkedDevicesStandSideBySide) {
  EXPECT_EQ(draw_topology(linked({{}, {}})), "\nNeuron Device Topology\n\n  [ 0 ]  [ 1 ]\n\nNo connections known.\n");
  EXPECT_EQ(draw_topology(linked({{}})), "\nNeuron Device Topology\n\n  [ 0 ]\n");
}

TEST(TopologyDrawing, AnythingElseIsAListOfLinks) {
  EXPECT_EQ(draw_topology(linked({{1, 2, 3}, {0}, {0}, {0}, {5}, {4}})),
            "\nNeuron Device Topology\n\n"
            "  [ 0 ]––►[ 1 ][ 2 ][ 3 ]\n  [ 1 ]––►[ 0 ]\n  [ 2 ]––►[ 0 ]\n  [ 3 ]––►[ 0 ]\n"
            "  [ 4 ]◄––►[ 5 ]\n");
}

TEST(TopologyDrawing, ForeignNeighbourListsAreHarmless) {
  EXPECT_EQ(draw_topology(linked({{0, -1, 99}, {}})),
            "\nNeuron Device Topology\n\n  [ 0 ]  [ 1 ]\n\nNo connections known.\n");
  EXPECT_EQ(draw_topology(NodeView{}), "\nNeuron Device Topology\n\n");
}

}  // namespace
}  // namespace neuron::render
