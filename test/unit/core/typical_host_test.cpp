#include "agent/core/typical_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/core/logical_cores.h"

namespace neuron::core {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

model::HostScan host_of(const std::string& type, const TypicalFacts& facts = {}) {
  return typical_host(*find_instance_type(type), facts);
}

TEST(TypicalHost, IsCompleteAndHealthy) {
  for (const InstanceType& type : all_instance_types()) {
    const model::HostScan host = typical_host(type, {});
    EXPECT_THAT(host.devices, SizeIs(static_cast<std::size_t>(type.device_count))) << type.name;
    EXPECT_THAT(host.efas, SizeIs(static_cast<std::size_t>(type.efa_count))) << type.name;
    EXPECT_THAT(host.problems, IsEmpty()) << type.name;
    for (const model::NeuronDevice& device : host.devices) {
      EXPECT_EQ(device.health.state, model::HealthState::healthy);
      EXPECT_THAT(device.core_health, SizeIs(static_cast<std::size_t>(type.physical_cores_per_device)));
      EXPECT_TRUE(device.bdf && device.memory_bytes && !device.pcie_root.empty()) << type.name;
      EXPECT_FALSE(device.serial) << "of one machine";
    }
    for (const model::EfaInterface& efa : host.efas)
      EXPECT_FALSE(efa.name.empty() || efa.pcie_root.empty()) << type.name;
  }
}

TEST(TypicalHost, LncIsTheFamilysOrTheChosenOne) {
  EXPECT_EQ(cores_per_device(host_of("trn2.48xlarge")), 4);
  EXPECT_EQ(cores_per_device(host_of("trn2.48xlarge", {1, ""})), 8);
  EXPECT_TRUE(has_lnc(*find_instance_type("trn3.3xlarge"), 1));
  EXPECT_FALSE(has_lnc(*find_instance_type("trn1.32xlarge"), 2));
  EXPECT_FALSE(has_lnc(*find_instance_type("p5.48xlarge"), 1)) << "no Neuron";
}

TEST(TypicalHost, OnlyServersOfAnUltraServerAreLinked) {
  EXPECT_FALSE(host_of("trn2.48xlarge").ultraserver);
  const auto linked = host_of("trn2u.48xlarge").ultraserver;
  ASSERT_TRUE(linked && linked->memberships.size() == 2);
  EXPECT_EQ(linked->memberships.back().server_id, "") << "of one machine";
}

TEST(InstancePlaces, PublishedAddressesStay) {
  const InstanceType& type = *find_instance_type("trn2.48xlarge");
  EXPECT_TRUE(has_device_addresses(type) && has_efa_addresses(type));
  const InstancePlaces places = places_of(type);
  for (std::size_t i = 0; i < places.devices.size(); ++i) EXPECT_EQ(places.devices[i], type.devices[i].bdf);
  // docs/reference/topology.md#trn2-eight-switches
  EXPECT_EQ(pci_parent_of(places.devices[0], places.efas), "0000:b9:02.1");
  EXPECT_EQ(host_bridge_above("0000:b9:02.1"), "pci0000:b7");
  EXPECT_EQ(host_bridge_above("pci0000:10"), "pci0000:10");
}

TEST(InstancePlaces, OthersAreMadeUp) {
  const InstanceType& trn3 = *find_instance_type("trn3.48xlarge");
  EXPECT_FALSE(has_device_addresses(trn3));
  EXPECT_TRUE(has_efa_addresses(trn3));
  EXPECT_FALSE(has_efa_addresses(*find_instance_type("g4dn.8xlarge")));
  EXPECT_THAT(places_of(*find_instance_type("g4dn.8xlarge")).efas, SizeIs(1));
}

TEST(InstancePlaces, NamesByPath) {
  EXPECT_EQ(rdma_name_of({0, 0x10, 0x19, 0}), "rdmap16s25");
  EXPECT_EQ(rdma_name_of({2, 0x10, 0x19, 1}), "rdmaP2p16s25f1");
}

TEST(Catalogue, AnUnknownTypeIsAnErrorWithSimilarNames) {
  EXPECT_EQ((*instance_type_called("ml.trn1.2xlarge"))->name, "trn1.2xlarge");
  const auto unknown = instance_type_called("trn1.2xlarg");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("did you mean trn1.2xlarge"));
}

}  // namespace
}  // namespace neuron::core
