// Devices and interfaces of one container lie side by side, whichever the kubelet asks first
// (docs/allocation.md). Every pod is judged by the official device-to-EFA tables, written down here once more.
#include <array>
#include <set>

#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using Requests = std::map<std::string, int>;

// Where the interface nearest to a device lies: its name, by device index (docs/reference/topology.md#nearest-efa).
std::string nearest_efa(const std::string& type, int device) {
  static constexpr std::array<int, 16> kTrn1Bus = {0x10, 0x10, 0xa0, 0xa0, 0x20, 0x20, 0x90, 0x90,
                                                   0x20, 0x20, 0x90, 0x90, 0x10, 0x10, 0xa0, 0xa0};
  static constexpr std::array<int, 16> kTrn2Bus = {0xc9, 0xb4, 0xb3, 0xca, 0x6c, 0x57, 0x56, 0x6d,
                                                   0x98, 0x83, 0x82, 0x99, 0xf5, 0xe0, 0xdf, 0xf6};
  const auto i = static_cast<std::size_t>(device);
  if (type.starts_with("trn2")) return "rdmap" + std::to_string(kTrn2Bus.at(i)) + "s0";
  const bool slot_1a = device < 4 || (device >= 8 && device < 12);
  return "rdmap" + std::to_string(kTrn1Bus.at(i)) + "s" + std::to_string(slot_1a ? 0x1a : 0x19);
}

std::vector<int> devices_of(const sim::ContainerGrant& container) {
  const std::string prefix = "/dev/neuron";
  std::vector<int> devices;
  for (const auto& node : container.devices) {
    if (node.container_path.starts_with(prefix))
      devices.push_back(std::stoi(node.container_path.substr(prefix.size())));
  }
  return devices;
}

// Every interface is the nearest of one of the container's devices.
void expect_nearest(const std::string& type, const Result<sim::PodResult>& pod) {
  ASSERT_TRUE(pod) << pod.error().message;
  const sim::ContainerGrant& container = pod->containers.at(0);
  std::set<std::string> nearest;
  for (const int device : devices_of(container)) nearest.insert(nearest_efa(type, device));
  for (const std::string& efa : container.ids.at(kEfa)) {
    EXPECT_TRUE(nearest.contains(efa)) << efa << " beside devices " << testing::PrintToString(devices_of(container));
  }
  EXPECT_TRUE(container.conflicts.empty());
}

struct Case {
  std::string type;
  std::string hardware;
  int count;
  int efas;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& one = info.param;
  std::string name = one.type.substr(0, one.type.find('.')) + (one.hardware == kCore ? "_cores" : "_devices");
  return name + std::to_string(one.count) + "_efas" + std::to_string(one.efas);
}

class Pairing : public testing::TestWithParam<Case> {
 protected:
  Node node{GetParam().type};

  void SetUp() override {
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    ASSERT_TRUE(node.wait_allocatable(kEfa, GetParam().type == "trn1.32xlarge" ? 8 : 16));
    ASSERT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->allocatable(kCore) > 0; }, kPatience));
  }
  std::vector<std::vector<std::string>> both_orders() const {
    return {{GetParam().hardware, kEfa}, {kEfa, GetParam().hardware}};
  }
  Requests wanted() const { return {{GetParam().hardware, GetParam().count}, {kEfa, GetParam().efas}}; }

  // Waits until the agent knows of every pod that came and went: a pod's end takes seconds on a real node, none here.
  bool settled() {
    const int per_device = GetParam().type == "trn1.32xlarge" ? 2 : 4;
    std::set<int> devices;  // held through neuron
    std::set<int> touched;  // by cores held through neuroncore
    for (const auto& pod : node.kubelet->pods()) {
      for (const auto& container : pod.containers) {
        for (const auto& held : container.devices) {
          if (held.resource == kNeuron) devices.insert(std::stoi(held.id));
          if (held.resource == kCore) touched.insert(std::stoi(held.id) / per_device);
        }
      }
    }
    return node.wait_allocatable(kCore, (16 - static_cast<int>(devices.size())) * per_device) &&
           node.wait_allocatable(kNeuron, 16 - static_cast<int>(touched.size()));
  }

  // The pod under test comes and goes, in both orders of the kubelet's calls.
  void try_both_orders() {
    for (const auto& order : both_orders()) {
      SCOPED_TRACE("asked first: " + order.front());
      ASSERT_TRUE(settled()) << node.agent->log();
      expect_nearest(GetParam().type, node.run("pod", wanted(), order));
      ASSERT_TRUE(node.kubelet->remove("pod"));
    }
  }
};

TEST_P(Pairing, OnAnEmptyNode) {
  try_both_orders();
}

TEST_P(Pairing, AsManyAsFitOneAfterTheOther) {
  const auto& [type, hardware, count, efas] = GetParam();
  const int devices = hardware == kCore ? (type == "trn1.32xlarge" ? count / 2 : count / 4) : count;
  for (int i = 0; i < 16 / devices; ++i) {
    SCOPED_TRACE("pod " + std::to_string(i));
    expect_nearest(type, node.run("pod" + std::to_string(i), wanted(), both_orders()[static_cast<std::size_t>(i % 2)]));
  }
}

TEST_P(Pairing, BesidePodsOfOtherKinds) {
  const std::string& type = GetParam().type;
  expect_nearest(type, node.run("one", {{kNeuron, 1}, {kEfa, 1}}, {kEfa, kNeuron}));
  try_both_orders();
  ASSERT_TRUE(node.run("cores", {{kCore, 2}}));
  try_both_orders();
  expect_nearest(type, node.run("two", {{kNeuron, 2}, {kEfa, 1}}, {kNeuron, kEfa}));
  try_both_orders();
  ASSERT_TRUE(node.kubelet->remove("one"));
  try_both_orders();
}

INSTANTIATE_TEST_SUITE_P(Tables, Pairing,
                         testing::Values(Case{"trn2.48xlarge", kNeuron, 4, 4}, Case{"trn1.32xlarge", kNeuron, 2, 1},
                                         Case{"trn1.32xlarge", kCore, 8, 1}, Case{"trn2.48xlarge", kCore, 8, 1}),
                         name_of);

}  // namespace
}  // namespace neuron::fakes
