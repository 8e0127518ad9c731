// From PodResources' messages to allocations: resources of device plugins, and claims.
#include "agent/rpc/pod_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

v1::ContainerResources& add_container(v1::ListPodResourcesResponse& list, const std::string& pod,
                                      const std::string& name) {
  v1::PodResources& entry = *list.add_pod_resources();
  entry.set_namespace_("train");
  entry.set_name(pod);
  v1::ContainerResources& container = *entry.add_containers();
  container.set_name(name);
  return container;
}

// As the kubelet lists a claim: each device repeats the CDI ids of those before it.
void add_claim(v1::ContainerResources& container, const std::string& claim, const std::string& driver,
               const std::vector<std::string>& devices) {
  v1::DynamicResource& resource = *container.add_dynamic_resources();
  resource.set_claim_namespace("train");
  resource.set_claim_name(claim);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    v1::ClaimResource& device = *resource.add_claim_resources();
    device.set_driver_name(driver);
    device.set_pool_name("node-1");
    device.set_device_name(devices[i]);
    for (std::size_t id = 0; id <= i; ++id) {
      device.add_cdi_devices()->set_name("k8s." + driver + "/claim=uid-" + devices[id]);
    }
  }
}

TEST(PodAnswers, AClaimIsOneEntryPerContainerAndDriver) {
  v1::ListPodResourcesResponse list;
  v1::ContainerResources& main = add_container(list, "b", "main");
  add_claim(main, "chips", "neuron.aws.com", {"neuron-group-4-7", "efa-rdmap16s25", "neuron-group-4-7"});
  add_claim(main, "chips", "gpu.example.com", {"gpu-0"});
  EXPECT_THAT(
      devices_in(list),
      ElementsAre(
          model::Allocation{
              "train", "b", "main", "gpu.example.com", {"gpu-0"}, "", "chips", "k8s.gpu.example.com/claim=uid-gpu-0"},
          model::Allocation{"train",
                            "b",
                            "main",
                            "neuron.aws.com",
                            {"efa-rdmap16s25", "neuron-group-4-7"},
                            "",
                            "chips",
                            "k8s.neuron.aws.com/claim=uid-neuron-group-4-7"}));
}

TEST(PodAnswers, ResourcesComeBeforeClaimsAndBothCount) {
  v1::ListPodResourcesResponse list;
  v1::ContainerResources& main = add_container(list, "b", "main");
  add_claim(main, "chips", "neuron.aws.com", {"neuron-device-3"});
  for (const char* id : {"1", "0", "1"}) {
    v1::ContainerDevices& devices = *main.add_devices();
    devices.set_resource_name("vpc.amazonaws.com/efa");
    devices.add_device_ids(id);
  }
  const auto all = devices_in(list);
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].resource_name, "vpc.amazonaws.com/efa");
  EXPECT_THAT(all[0].ids, ElementsAre("0", "1"));
  EXPECT_EQ(all[0].claim, "");
  EXPECT_EQ(all[1].resource_name, "neuron.aws.com");
  EXPECT_EQ(all[1].claim, "chips");
}

TEST(PodAnswers, AClaimWithoutDevicesIsNothingHeld) {
  v1::ListPodResourcesResponse list;
  add_claim(add_container(list, "b", "main"), "chips", "neuron.aws.com", {});
  const auto all = devices_in(list);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0], (model::Allocation{"train", "b", "", "", {}}));
}

// PodResources has no field for it: the CDI id alone says so (agent/core/hardware.h).
TEST(PodAnswers, DevicesForAdminAccessAreAnEntryOfTheirOwn) {
  v1::ListPodResourcesResponse list;
  v1::DynamicResource& claim = *add_container(list, "b", "main").add_dynamic_resources();
  claim.set_claim_name("chips");
  std::vector<std::string> ids;
  for (const auto& [device, id] : std::vector<std::pair<std::string, std::string>>{
           {"neuron-device-1", "k8s.neuron.aws.com/claim=uid-neuron-device-1"},
           {"neuron-device-1", "k8s.neuron.aws.com/claim=uid-admin-neuron-device-1"},
           {"neuron-device-2", "k8s.neuron.aws.com/claim=uid-admin-neuron-device-2"},
           {"neuron-device-3", "k8s.neuron.aws.com/claim=uid-neuron-device-3"},
           {"neuron-device-4", "k8s.other.aws.com/claim=uid-admin-neuron-device-4"},
           {"efa-rdmap16s25", ""}}) {
    if (!id.empty()) ids.push_back(id);
    if (device == "neuron-device-3") ids.emplace_back("k8s.neuron.aws.com/claim=uid-request-admin-neuron-device-3");
    v1::ClaimResource& entry = *claim.add_claim_resources();
    entry.set_driver_name("neuron.aws.com");
    entry.set_device_name(device);
    for (const std::string& one : ids) entry.add_cdi_devices()->set_name(one);
  }
  const auto all = devices_in(list);
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_FALSE(all[0].admin_access);
  EXPECT_THAT(all[0].ids, ElementsAre("efa-rdmap16s25", "neuron-device-1", "neuron-device-3", "neuron-device-4"))
      << "a device without an id of its own counts as held";
  EXPECT_TRUE(all[1].admin_access);
  EXPECT_THAT(all[1].ids, ElementsAre("neuron-device-2"));
  EXPECT_EQ(all[1].claim, "chips");
  EXPECT_EQ(all[1].cdi_id, all[0].cdi_id) << "the claim's uid";
}

// Several claims have cores of one device, and its name says nothing of which.
TEST(PodAnswers, SharesOfADeviceAreNamedByTheirCores) {
  v1::ListPodResourcesResponse list;
  v1::DynamicResource& claim = *add_container(list, "b", "main").add_dynamic_resources();
  claim.set_claim_name("cores");
  std::vector<std::string> ids;
  for (const char* id : {"uid-neuron-device-3-share-0-1", "uid-neuron-device-3-share-4-7", "uid-neuron-device-4"}) {
    ids.push_back("k8s.neuron.aws.com/claim=" + std::string(id));
    v1::ClaimResource& entry = *claim.add_claim_resources();
    entry.set_driver_name("neuron.aws.com");
    entry.set_device_name(ids.size() < 3 ? "neuron-device-3" : "neuron-device-4");
    for (const std::string& one : ids) entry.add_cdi_devices()->set_name(one);
  }
  const auto all = devices_in(list);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_THAT(all[0].ids, ElementsAre("neuron-device-3-share-0-1", "neuron-device-3-share-4-7", "neuron-device-4"));
}

TEST(PodAnswers, ForeignNamesOfClaimsComeOutPrintableAndBounded) {
  v1::ListPodResourcesResponse list;
  add_claim(add_container(list, "b", "main"), "\x1b[31m", std::string(9999, 'd'), {"a\nb"});
  const auto all = devices_in(list);
  ASSERT_THAT(all, SizeIs(1));
  EXPECT_EQ(all[0].claim, "\\x1b[31m");
  EXPECT_THAT(all[0].ids, ElementsAre("a\\x0ab"));
  EXPECT_LE(all[0].resource_name.size(), kMaxNameBytes + 8);
  EXPECT_THAT(devices_in({}), IsEmpty());
}

}  // namespace
}  // namespace neuron::rpc
