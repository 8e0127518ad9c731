#pragma once

#include <string>
#include <vector>

#include "tools/kubectl-neuron/fit.h"
#include "tools/kubectl-neuron/plan.h"

// Fleets and pods for questions about fit.
namespace neuron::fleet::test {

// A node of the type as the agent offers it: with counts, or with the driver's own pool.
[[nodiscard]] Node node_of(const std::string& name, const std::string& type, Mode mode = Mode::device_plugin);
// Adds it with its pool.
void add_node(Fleet& fleet, const std::string& name, const std::string& type, Mode mode = Mode::device_plugin);
// The project's classes, as the chart has them; with extended resources.
void add_classes(Fleet& fleet);

[[nodiscard]] Pod pod_of(const std::string& name, const Amounts& requests, const std::string& node = "");
void add_pod(Fleet& fleet, const std::string& name, const std::string& node, const Amounts& requests);

[[nodiscard]] ClaimRequest request_of(const std::string& device_class, std::int64_t count = 1);
// A template "default/<name>".
void add_template(Fleet& fleet, const std::string& name, std::vector<ClaimRequest> requests,
                  std::vector<ClaimConstraint> constraints = {});
[[nodiscard]] Pod pod_with_claim(const std::string& name, const std::string& of_template);
// A pod on the node with a claim for these devices of its pool.
void add_holder(Fleet& fleet, const std::string& name, const std::string& node,
                const std::vector<std::string>& devices);

// A pod's spec with 4 devices.
inline const std::string kPodSpec =
    R"({"containers":[{"name":"main","resources":{"limits":{"aws.amazon.com/neuron":"4"}}}]})";
// An object "o" of this kind with this spec; %s in it stands for a pod's spec.
[[nodiscard]] std::string object_of(const std::string& kind, std::string spec, const std::string& pod = kPodSpec);
[[nodiscard]] std::string deployment(int replicas);
// In the namespace "default"; an error fails the test.
[[nodiscard]] Manifest manifest_of(const std::string& text);

// The one node's verdict.
[[nodiscard]] Verdict fit_on(const Fleet& fleet, const Pod& pod, const std::string& node);
[[nodiscard]] std::vector<Obstacle::Kind> kinds_of(const Verdict& verdict);
[[nodiscard]] std::vector<std::string> device_names(const Verdict& verdict);

}  // namespace neuron::fleet::test
