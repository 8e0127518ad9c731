#pragma once

#include <string>
#include <vector>

#include "tools/kubectl-neuron/fleet.h"

// Hand-built fleets of machines of the catalogue: fixed values, no files, no clocks.
namespace neuron::test {

// A sound node of this type whose agent answered: nothing is held.
[[nodiscard]] fleet::Node node_of(const std::string& name, const std::string& instance_type);

// The pod holds these devices whole, with the `efas` interfaces from `first_efa` on.
void hold(fleet::Node& node, const std::string& pod_namespace, const std::string& pod, const std::vector<int>& devices,
          std::size_t first_efa = 0, std::size_t efas = 0);
// The pod holds these logical cores alone.
void hold_cores(fleet::Node& node, const std::string& pod_namespace, const std::string& pod,
                const std::vector<int>& cores);

void make_unhealthy(fleet::Node& node, std::size_t device);

// Three nodes of two types, with pods, a broken device, and one node whose agent does not answer.
[[nodiscard]] fleet::Fleet small_fleet();

// So many nodes of four types, in a pattern that is always the same.
[[nodiscard]] fleet::Fleet large_fleet(int nodes);

}  // namespace neuron::test
