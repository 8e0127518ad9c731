#pragma once

#include <string>
#include <vector>

#include "deviceplugin/v1beta1/api.pb.h"
#include "tools/neuron-sim/kubelet/pod.h"

namespace neuron::sim {

// Adds one resource's answer, without mounts and annotations, to what the container gets. What is there already wins; a
// different value is recorded in ContainerGrant::conflicts. Source: pod_devices.go deviceRunContainerOptions.
void merge_response(ContainerGrant& grant, const std::string& resource,
                    const v1beta1::ContainerAllocateResponse& response);

// Numbers first, by value, then other text, by bytes: the order in which people expect ids.
[[nodiscard]] std::vector<std::string> in_reading_order(const IdSet& ids);

}  // namespace neuron::sim
