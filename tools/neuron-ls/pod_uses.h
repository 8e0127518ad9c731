#pragma once

#include <vector>

#include "agent/model/allocation.h"
#include "tools/render/node_report.h"

namespace neuron::ls {

// Who holds which device, core and interface of the report's host: the kubelet's ids as this project's resources count
// them (aws.amazon.com/neuroncore, neuron, neurondevice; vpc.amazonaws.com/efa). One entry per container, in order of
// namespace, pod and container. Other resources and ids that are none of this node's are left out. Pure.
[[nodiscard]] std::vector<render::PodUse> pod_uses(const std::vector<model::Allocation>& allocations,
                                                   const render::NodeReport& report);

}  // namespace neuron::ls
