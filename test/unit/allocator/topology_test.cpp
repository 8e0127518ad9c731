#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> near_names(const allocator::NodeTopology& topology, std::size_t device) {
  std::vector<std::string> names;
  for (const int efa : topology.devices[device].near_efas) {
    names.push_back(topology.efas[static_cast<std::size_t>(efa)].name);
  }
  return names;
}

TEST(Topology, Trainium1TakesTheOfficialEfas) {
  const allocator::NodeTopology topology = topology_of("trn1.32xlarge");
  EXPECT_TRUE(topology.groups_of_torus);
  EXPECT_EQ(topology.cores_per_device, 2);
  EXPECT_THAT(near_names(topology, 0), ElementsAre("rdmap16s26"));
  EXPECT_THAT(near_names(topology, 15), ElementsAre("rdmap160s25"));
  EXPECT_THAT(topology.efas[1].near_devices, ElementsAre(0, 1));
  EXPECT_EQ(topology.devices[0].numa_node, 0);
  EXPECT_EQ(topology.devices[2].numa_node, 1);
}

TEST(Topology, Trainium2PairsDevicesBehindTheirSwitch) {
  const allocator::NodeTopology topology = topology_of("trn2.48xlarge");
  EXPECT_THAT(near_names(topology, 0), ElementsAre("rdmap201s0"));
  EXPECT_THAT(near_names(topology, 3), ElementsAre("rdmap202s0"));
  for (const auto& [a, b] : {std::pair{0, 3}, {1, 2}, {4, 7}, {5, 6}, {8, 11}, {9, 10}, {12, 15}, {13, 14}}) {
    EXPECT_EQ(topology.devices[static_cast<std::size_t>(a)].pci_group,
              topology.devices[static_cast<std::size_t>(b)].pci_group);
  }
  EXPECT_NE(topology.devices[0].pci_group, topology.devices[1].pci_group);
}

TEST(Topology, FallsBackToTheSwitchThenToNuma) {
  model::HostScan scan = scan_of("trn2.48xlarge");
  scan.instance_type = "trn9.huge";
  EXPECT_THAT(near_names(allocator::make_topology(scan), 0), ElementsAre("rdmap201s0", "rdmap202s0"));
  EXPECT_TRUE(allocator::make_topology(scan).groups_of_torus) << "four neighbours each";
  for (auto& efa : scan.efas) efa.switch_key.clear();
  EXPECT_EQ(near_names(allocator::make_topology(scan), 0).size(), 8U) << "the EFAs of NUMA node 1";
  for (auto& device : scan.devices) device.numa_node.reset();
  EXPECT_THAT(near_names(allocator::make_topology(scan), 0), IsEmpty());
}

TEST(Topology, ALiveAddressBeatsTheTable) {
  model::HostScan scan = scan_of("trn2.48xlarge");
  scan.devices[0].bdf = model::Sourced<model::Bdf>{{0, 0x6e, 0, 0}, model::Origin::live};
  EXPECT_THAT(near_names(allocator::make_topology(scan), 0), ElementsAre("rdmap108s0", "rdmap109s0"));
}

TEST(Topology, AMissingOfficialEfaFallsBackToItsNeighbour) {
  model::HostScan scan = scan_of("trn2.48xlarge");
  std::erase_if(scan.efas, [](const auto& efa) { return efa.name == "rdmap201s0"; });
  EXPECT_THAT(near_names(allocator::make_topology(scan), 0), ElementsAre("rdmap202s0"));
}

TEST(Topology, Shapes) {
  EXPECT_TRUE(topology_of("inf2.48xlarge").ring);
  EXPECT_TRUE(topology_of("inf2.24xlarge").line);
  EXPECT_TRUE(topology_of("inf1.6xlarge").line);
  EXPECT_TRUE(topology_of("inf1.24xlarge").line);
  EXPECT_TRUE(topology_of("trn3e.24xlarge").switched);
  EXPECT_FALSE(topology_of("trn1.2xlarge").groups_of_torus);
  model::HostScan stranger = scan_of("inf2.48xlarge");
  stranger.instance_type = "inf9.huge";
  EXPECT_TRUE(allocator::make_topology(stranger).ring);
  stranger = scan_of("inf2.24xlarge");
  stranger.instance_type.clear();
  EXPECT_TRUE(allocator::make_topology(stranger).line);
}

TEST(Topology, GarbageSwitchKeysAreUnknown) {
  model::HostScan scan = scan_of("trn2.48xlarge");
  for (const char* key : {"", ":", "0000", "zz:yy", "0000:fff", "123456:b9", "0000:b9:01"}) {
    for (auto& efa : scan.efas) efa.switch_key = key;
    for (const auto& efa : allocator::make_topology(scan).efas) EXPECT_EQ(efa.pci_group, -1) << key;
  }
}

TEST(Topology, NoNeuronAndNothingAtAll) {
  const allocator::NodeTopology gpu = topology_of("p5.48xlarge");
  EXPECT_EQ(gpu.efas.size(), 32U);
  EXPECT_TRUE(gpu.devices.empty());
  EXPECT_EQ(gpu.efas[0].pci_group, gpu.efas[3].pci_group);
  EXPECT_NE(gpu.efas[3].pci_group, gpu.efas[4].pci_group);
  EXPECT_TRUE(allocator::make_topology({}).devices.empty());
}

}  // namespace
}  // namespace neuron::test
