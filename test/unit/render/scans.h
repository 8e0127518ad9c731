#pragma once

#include <string>
#include <vector>

#include "agent/model/host_scan.h"
#include "tools/render/node_view.h"

// Hand-built machines: what a scan of them says, without any file.
namespace neuron::test {

// 16 devices, 2 cores each, 4x4 torus; addresses, neighbours and CPUs as a user of the official tool reported them.
[[nodiscard]] model::HostScan trn1_32xlarge();

// 16 devices, 8 physical cores each, LNC 2, torus in the driver's Trainium2 order.
[[nodiscard]] model::HostScan trn2_48xlarge();

// A chain of 4 devices; three of them busy, with a monitor and a lister attached to all. No instance type or id.
[[nodiscard]] model::HostScan inf1_6xlarge_busy();
[[nodiscard]] std::map<int, std::string> inf1_commands();

// One idle device, NUMA node -1.
[[nodiscard]] model::HostScan inf2_xlarge();

// 12 devices in a ring; nothing but the device index, the cores and the neighbours is known.
[[nodiscard]] model::HostScan inf2_48xlarge_bare();

// Host numbering, every device having as many logical cores as physical_cores / lnc.
[[nodiscard]] std::vector<std::vector<int>> core_ids_of(const model::HostScan& scan);

// The view of a scan with its core ids and the defaults of the tool.
[[nodiscard]] render::NodeView view_of(const model::HostScan& scan, render::ViewRequest request = {});

}  // namespace neuron::test
