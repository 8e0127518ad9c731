#pragma once

#include <string>

#include "tools/render/node_report.h"
#include "tools/render/style.h"

namespace neuron::render {

// The EFA interfaces of a node in the style of the device table: name, verbs device, PCI address, NUMA node, what its
// peer memory is for, nearest devices; health where somebody assessed it, pods where the kubelet answered. "NA" is
// unknown, "-" none. A sentence instead of a table when there is no interface. Pure, any thread.
[[nodiscard]] std::string efa_table(const NodeReport& report, ColourDepth colour = ColourDepth::none);

// Who holds what, one row per container: namespace, pod, container, devices, core ids, EFA interfaces. A sentence when
// no container holds any; "" when the kubelet was not asked or did not answer.
[[nodiscard]] std::string pod_table(const NodeReport& report);

}  // namespace neuron::render
