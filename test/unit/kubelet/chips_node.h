#pragma once

#include <string>
#include <utility>
#include <vector>

#include "test/unit/kubelet/test_plugin.h"

namespace neuron::sim::test {

inline constexpr const char* kChip = "example.com/chip";
inline constexpr const char* kNic = "example.com/nic";
using Behaviour = TestPlugin::Behaviour;

// A kubelet with one plugin of `count` chips, registered.
struct Node {
  explicit Node(int count, int numa_nodes = 0, Behaviour behaviour = {}, FakeKubeletOptions options = {})
      : kubelet(std::move(options)),
        chips(*kubelet, kChip, "chip.sock", numbered_devices(count, numa_nodes), std::move(behaviour)) {
    EXPECT_TRUE(chips.register_plugin().ok());
    EXPECT_TRUE(kubelet.reaches(kChip, count));
  }
  KubeletTest kubelet;
  TestPlugin chips;
};

inline Behaviour prefers(std::vector<std::string> ids) {
  Behaviour behaviour;
  behaviour.preferred = true;
  behaviour.on_preferred = [ids](const auto&, auto& answer) {
    answer.mutable_deviceids()->Assign(ids.begin(), ids.end());
    return grpc::Status::OK;
  };
  return behaviour;
}

inline Behaviour refuses_preference() {
  Behaviour behaviour;
  behaviour.preferred = true;
  behaviour.on_preferred = [](const auto&, auto&) { return grpc::Status(grpc::INTERNAL, "cannot choose"); };
  return behaviour;
}

inline std::vector<std::string> strings(const google::protobuf::RepeatedPtrField<std::string>& list) {
  return {list.begin(), list.end()};
}

}  // namespace neuron::sim::test
