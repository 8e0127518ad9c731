// Who holds it, as labels: pods by what the kubelet tells, processes by what the driver tells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/metrics/families.h"
#include "test/unit/metrics/loaded_node.h"
#include "test/unit/metrics/series.h"

namespace neuron::test {
namespace {

using metrics::Labels;
using metrics::MetricsInput;
using model::Resource;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

holdings::Holding held(Resource resource, std::vector<int> units, std::vector<int> cores, std::vector<int> devices,
                       const std::string& by) {
  holdings::Holding holding;
  holding.resource = resource;
  holding.units = std::move(units);
  holding.cores = std::move(cores);
  holding.devices = std::move(devices);
  holding.holder = holding.shown_as = by;
  return holding;
}

std::string pod_of(const Labels& labels) {
  EXPECT_THAT(labels, SizeIs(3));
  return labels.at(1).value;
}

TEST(HolderLabels, CoresDevicesAndInterfaces) {
  const metrics::HolderLabels holders({held(Resource::neuroncore, {0, 1}, {0, 1}, {0}, "ns/one/main"),
                                       held(Resource::neuron, {2}, {4, 5}, {2}, "ns/two/main"),
                                       held(Resource::efa, {0}, {}, {}, "ns/three/main")});
  EXPECT_EQ(pod_of(holders.of_core(1)), "one");
  EXPECT_EQ(pod_of(holders.of_device(0)), "one");
  EXPECT_EQ(pod_of(holders.of_core(5)), "two");
  EXPECT_EQ(pod_of(holders.of_device(2)), "two");
  EXPECT_EQ(pod_of(holders.of_efa(0)), "three");
  EXPECT_EQ(pod_of(holders.of_core(2)), "");
  EXPECT_EQ(pod_of(holders.of_efa(1)), "");
  EXPECT_EQ(holders.of_core(0)[0].value, "ns");
  EXPECT_EQ(holders.of_core(0)[2].value, "main");
}

TEST(HolderLabels, ADeviceOfSeveralContainersIsNobodys) {
  const metrics::HolderLabels holders({held(Resource::neuroncore, {0}, {0}, {0}, "ns/one/main"),
                                       held(Resource::neuroncore, {1}, {1}, {0}, "ns/two/main"),
                                       held(Resource::neuroncore, {2}, {2}, {1}, "ns/one/main"),
                                       held(Resource::neuron, {1}, {2, 3}, {1}, "ns/one/main")});
  EXPECT_EQ(pod_of(holders.of_core(0)), "one");
  EXPECT_EQ(pod_of(holders.of_core(1)), "two");
  EXPECT_EQ(pod_of(holders.of_device(0)), "");
  EXPECT_EQ(pod_of(holders.of_device(1)), "one");
}

TEST(HolderLabels, WhoIsNotKnownYetHasNoName) {
  holdings::Holding fresh = held(Resource::neuron, {0}, {0, 1}, {0}, "");
  holdings::Holding by_uid = held(Resource::neuron, {1}, {2, 3}, {1}, "pod 1234/main");
  by_uid.shown_as = "";
  const metrics::HolderLabels holders({fresh, by_uid});
  EXPECT_EQ(pod_of(holders.of_device(0)), "");
  EXPECT_EQ(pod_of(holders.of_device(1)), "");
}

TEST(HolderLabels, EverySeriesOfADeviceACoreOrAnInterfaceSaysIt) {
  const Series series(loaded_node("trn2.48xlarge", 2));
  EXPECT_THAT(series.of("neuroncore_utilization_ratio", {R"(neuroncore="7")", R"(namespace="research-team")",
                                                         R"(pod="llama-pretraining-7")", R"(container="main")"}),
              SizeIs(1));
  EXPECT_THAT(series.of("node_amazonefa_rx_bytes", {R"(pod="llama-network-15")"}), SizeIs(1));
  // Four containers hold a core of the device each.
  EXPECT_THAT(series.of("hardware_ecc_events_total", {R"(pod="")"}), SizeIs(64));
}

TEST(RuntimeTag, IsThePidOfTheOnlyProcessOnTheCore) {
  model::NeuronDevice device;
  EXPECT_EQ(metrics::runtime_tag(device, {0, 1}), "");
  device.processes = {{11, std::uint8_t{0b0011}, {}, {}}, {12, std::uint8_t{0b0110}, {}, {}}, {13, {}, {}, {}}};
  EXPECT_EQ(metrics::runtime_tag(device, {0}), "11");
  EXPECT_EQ(metrics::runtime_tag(device, {1}), "");
  EXPECT_EQ(metrics::runtime_tag(device, {2, 3}), "12");
  EXPECT_EQ(metrics::runtime_tag(device, {3}), "");
  EXPECT_EQ(metrics::runtime_tag(device, {33, 63}), "");
}

TEST(RuntimeMemory, PerProcessWhereTheDriverTells) {
  MetricsInput input = loaded_node("trn1.32xlarge", 1);
  host_of(input).devices[0].processes = {{77, std::uint8_t{3}, 1000, 2000}};
  host_of(input).devices[1].processes = {{77, std::uint8_t{3}, 10, 20}, {78, std::uint8_t{0}, 0, 5}};
  const Series told(input);
  EXPECT_THAT(told.of("neuron_runtime_memory_used_bytes", {R"(runtime_tag="77")"}), ElementsAre("1010", "2020"));
  EXPECT_THAT(told.of("neuron_runtime_memory_used_bytes"), SizeIs(4));
  EXPECT_THAT(told.of("neuron_runtime_memory_used_bytes", {R"(runtime_tag="77")", R"(pod="")"}), SizeIs(2))
      << "it is on cores of two containers";
  host_of(input).devices[1].processes = {{77, std::uint8_t{0}, 10, 20}, {78, std::uint8_t{1}, 0, 5}};
  host_of(input).devices[0].processes = {{79, std::uint8_t{2}, 1, 1}};
  const Series held(input);
  EXPECT_THAT(held.of("neuron_runtime_memory_used_bytes", {R"(runtime_tag="78")", R"(pod="llama-pretraining-2")"}),
              SizeIs(2));
  EXPECT_THAT(held.of("neuron_runtime_memory_used_bytes", {R"(runtime_tag="79")", R"(pod="llama-pretraining-1")"}),
              SizeIs(2));
  EXPECT_THAT(held.of("neuron_runtime_memory_used_bytes", {R"(runtime_tag="77")", R"(pod="")"}), SizeIs(2))
      << "the driver names no core, and those of the device are two containers'";
  EXPECT_THAT(told.of("neuroncore_utilization_ratio", {R"(neuroncore="1")", R"(runtime_tag="77")"}), SizeIs(1));
  // One process whose memory nobody tells: then per container, so that sums stay whole.
  host_of(input).devices[2].processes = {{79, {}, {}, {}}};
  const Series not_told(input);
  EXPECT_THAT(not_told.of("neuron_runtime_memory_used_bytes", {R"(runtime_tag="77")"}), IsEmpty());
  EXPECT_THAT(not_told.of("neuron_runtime_memory_used_bytes", {R"(pod="llama-pretraining-0")"}),
              ElementsAre("200000", "20000000"));
  EXPECT_THAT(not_told.of("neuron_runtime_memory_used_bytes"), SizeIs(64));
}

}  // namespace
}  // namespace neuron::test
