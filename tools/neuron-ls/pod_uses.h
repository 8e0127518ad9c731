#pragma once

#include <string_view>
#include <vector>

#include "agent/model/allocation.h"
#include "tools/render/node_report.h"

namespace neuron::ls {

// Who holds which device, core and interface of the report's host: the kubelet's ids as this project's resources count
// them (aws.amazon.com/neuroncore, neuron, neurondevice; vpc.amazonaws.com/efa), and names of devices in claims of
// `driver` ("neuron.aws.com") as our driver gives them. One entry per container and claim, what it has through device
// plugins being one too, in order of namespace, pod, container, and claim. Other resources and drivers, and ids that
// are none of this node's, are left out. Pure.
[[nodiscard]] std::vector<render::PodUse> pod_uses(const std::vector<model::Allocation>& allocations,
                                                   const render::NodeReport& report, std::string_view driver);

}  // namespace neuron::ls
