#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/kube/answers.h"
#include "agent/model/resource.h"

// A pod of this node with the annotations that AWS's scheduler extender and HAMi write
// (docs/allocation.md#placed-by-others). Foreign text; pure.
namespace neuron::plugin {

inline constexpr const char* kIdsAnnotation = "AWS_NEURON_IDS";            // "4,5,6,7": of devices or logical cores
inline constexpr const char* kTimeAnnotation = "NEURON_ALLOC_TIME";        // Unix time, ns
inline constexpr const char* kAllocatedAnnotation = "NEURON_ALLOCATED";    // "false"; "true" once they are given
inline constexpr const char* kTypeAnnotation = "NEURON_RESOURCE_TYPE";     // of HAMi, for cores only
inline constexpr std::size_t kMostPlacedIds = 1024, kMostIdsBytes = 8192;  // above what any node has
inline constexpr int kHighestPlacedId = 65535;

// The ids that a scheduler extender has chosen for a container. Passive data.
struct PlacedIds {
  model::Resource of{};  // neuron: device indices; neuroncore: logical cores
  std::vector<int> ids;  // ascending, each once
  friend bool operator==(const PlacedIds&, const PlacedIds&) = default;
};

// A container's requests for devices and cores, each above 0. Passive data.
struct PlacedContainer {
  std::string name;
  std::map<model::Resource, int> requests;
  std::optional<PlacedIds> placed{};  // nullopt: none were chosen for it
};

// Passive data. Names are foreign, bounded and printable.
struct PlacedPod {
  std::string uid;
  std::string pod_namespace, name;
  std::string created;                      // metadata.creationTimestamp, which sorts as text
  bool waits = false;                       // Pending, not deleted, and not acknowledged by the kubelet
  std::optional<std::uint64_t> time{};      // of NEURON_ALLOC_TIME
  std::string problem{};                    // why its annotations cannot be followed; "" = they can, or there are none
  std::vector<PlacedContainer> containers;  // with requests, in the kubelet's order: init containers first

  [[nodiscard]] std::string full_name() const { return pod_namespace + "/" + name; }
  [[nodiscard]] bool is_placed() const;  // a container has placed ids
};

// Errors: invalid_argument, when `text` is no list of 1 to 1024 numbers of at most 65535, joined by commas. In order.
[[nodiscard]] Result<std::vector<int>> parse_placed_ids(std::string_view text);

// AWS_NEURON_IDS is one list for all containers of a pod. As HAMi writes it, each container takes as many of its ids as
// it asks for, in the kubelet's order: of devices where it asks for devices, else of cores. A list of another length,
// or with an id twice in one container, is a problem. NEURON_ALLOCATED "true" counts as no placement.
[[nodiscard]] PlacedPod read_placed_pod(const kube::ApiObject& object);

}  // namespace neuron::plugin
