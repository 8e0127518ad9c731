#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "agent/holdings/holding.h"
#include "agent/model/allocation.h"
#include "agent/report/node_report.h"

// From a scan and what containers hold to a node's report: the same for neuron-ls and for the agent's /node. Pure.
namespace neuron::report {

// Indices of devices whose list of neighbours the driver shows empty: of a scan before the tables complete it.
[[nodiscard]] std::set<int> empty_lists(const model::HostScan& scan);

// Of a completed or assessed host. `empty_lists`: as the function, of its scan. Without pods, commands and own_dev.
[[nodiscard]] NodeReport make_node_report(model::HostScan host, std::set<int> empty_lists = {});

// Adds the values that only the picture shows: physical_cores, pci_keys and switched.
void add_picture(NodeReport& report);

// Containers that hold devices, cores and interfaces of the report's host: the kubelet's ids as this project's
// resources number them (aws.amazon.com/neuroncore, neuron, neurondevice; vpc.amazonaws.com/efa), and names of devices
// in claims of `driver` ("neuron.aws.com"). One entry per container and claim, and one for all that a container has
// through device plugins, in order of namespace, pod, container and claim. Other resources and drivers, and ids that
// this node does not have, are left out.
[[nodiscard]] std::vector<PodUse> pod_uses(const std::vector<model::Allocation>& allocations, const NodeReport& report,
                                           std::string_view driver);

// The same of the agent's holdings, with positions of interfaces in report.host.efas. A holder that the kubelet has not
// named yet has an entry without pod.
[[nodiscard]] std::vector<PodUse> pod_uses(const std::vector<holdings::Holding>& held, const NodeReport& report);

}  // namespace neuron::report
