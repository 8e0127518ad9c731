#pragma once

#include <cstddef>
#include <vector>

#include "agent/model/allocation.h"
#include "agent/rpc/allocatable.h"
#include "podresources/v1/api.pb.h"

// From messages of PodResources to plain structs. Foreign: names come out printable, cut after kMaxNameBytes. Pure.
namespace neuron::rpc {

inline constexpr std::size_t kMaxNameBytes = 512;  // Kubernetes' own longest is 253

// One entry per container and resource, then one per container, claim and driver; containers in the order of the
// answer. A pod that has neither is one entry without container, resource and ids.
[[nodiscard]] std::vector<model::Allocation> devices_in(const v1::ListPodResourcesResponse& response);
[[nodiscard]] Allocatable allocatable_in(const v1::AllocatableResourcesResponse& response);

}  // namespace neuron::rpc
