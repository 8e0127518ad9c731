#include "test/unit/kubectl_neuron/questions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tools/kubectl-neuron/plan.h"

namespace neuron::fleet::test {

Node node_of(const std::string& name, const std::string& type, Mode mode) {
  Node node = empty_node(type, mode).node;
  node.name = name;
  node.labels["kubernetes.io/hostname"] = name;
  return node;
}

void add_node(Fleet& fleet, const std::string& name, const std::string& type, Mode mode) {
  fleet.nodes.push_back(node_of(name, type, mode));
  for (Pool pool : empty_node(type, mode).pools) {
    pool.name = pool.node = name;
    fleet.pools.push_back(std::move(pool));
  }
}

void add_classes(Fleet& fleet) {
  const std::string head = "device.driver == 'neuron.aws.com' && ";
  const std::string its = "device.attributes['neuron.aws.com']";
  fleet.classes = {
      {"core.neuron.aws.com",
       {{head + "(" + its + ".resourceType == 'neuron_core' || " + its + ".?whole.hasValue())"}},
       ""},
      {"efa.neuron.aws.com", {{head + its + ".resourceType == 'efa'"}}, "vpc.amazonaws.com/efa"},
      {"group.neuron.aws.com", {{head + its + ".resourceType == 'neuron_group'"}}, ""},
      {"neuron.aws.com",
       {{head + its + ".resourceType in ['neuron_device', 'neuron_node'] && " + its + ".?whole.orValue(true)"}},
       "aws.amazon.com/neuron"}};
}

Pod pod_of(const std::string& name, const Amounts& requests, const std::string& node) {
  Pod pod;
  pod.pod_namespace = "default";
  pod.name = name;
  pod.node = node;
  pod.phase = node.empty() ? "Pending" : "Running";
  pod.containers = {{"main", false, false, requests, {}}};
  return pod;
}

void add_pod(Fleet& fleet, const std::string& name, const std::string& node, const Amounts& requests) {
  fleet.pods.push_back(pod_of(name, requests, node));
  std::ranges::sort(fleet.pods, {}, [](const Pod& pod) { return std::tie(pod.pod_namespace, pod.name); });
}

ClaimRequest request_of(const std::string& device_class, std::int64_t count) {
  ClaimRequest request;
  request.name = "r";
  request.device_class = device_class;
  request.count = count;
  return request;
}

void add_template(Fleet& fleet, const std::string& name, std::vector<ClaimRequest> requests,
                  std::vector<ClaimConstraint> constraints) {
  fleet.claim_templates["default/" + name] = std::move(requests);
  fleet.template_constraints["default/" + name] = std::move(constraints);
}

Pod pod_with_claim(const std::string& name, const std::string& of_template) {
  Pod pod = pod_of(name, {});
  pod.claims = {{"devices", "", of_template}};
  return pod;
}

void add_holder(Fleet& fleet, const std::string& name, const std::string& node,
                const std::vector<std::string>& devices) {
  Claim claim;
  claim.claim_namespace = "default";
  claim.name = name + "-devices";
  claim.allocated = true;
  claim.reserved_for = {name};
  for (const std::string& device : devices) claim.devices.push_back({"r", "neuron.aws.com", node, device, false, {}});
  fleet.claims.push_back(claim);
  std::ranges::sort(fleet.claims, {}, [](const Claim& one) { return std::tie(one.claim_namespace, one.name); });
  Pod pod = pod_of(name, {}, node);
  pod.claims = {{"devices", claim.name, "held-" + name}};
  fleet.claim_templates["default/held-" + name] = {
      request_of("neuron.aws.com", static_cast<std::int64_t>(devices.size()))};
  fleet.pods.push_back(pod);
  std::ranges::sort(fleet.pods, {}, [](const Pod& one) { return std::tie(one.pod_namespace, one.name); });
}

std::string object_of(const std::string& kind, std::string spec, const std::string& pod) {
  for (std::size_t at = 0; (at = spec.find("%s", at)) != std::string::npos; at += pod.size()) spec.replace(at, 2, pod);
  return R"({"kind":")" + kind + R"(","metadata":{"name":"o"},"spec":)" + spec + "}";
}

std::string deployment(int replicas) {
  return R"({"kind":"Deployment","metadata":{"name":"serve"},"spec":{"replicas":)" + std::to_string(replicas) +
         R"(,"template":{"spec":)" + kPodSpec + "}}}";
}

Manifest manifest_of(const std::string& text) {
  const auto manifest = parse_manifest(text, "default", {});
  EXPECT_TRUE(manifest) << manifest.error().message;
  return manifest.value_or(Manifest{});
}

Verdict fit_on(const Fleet& fleet, const Pod& pod, const std::string& node) {
  const std::vector<NodeState> states = node_states(fleet);
  const auto at = std::ranges::find(states, node, [](const NodeState& state) { return state.node.name; });
  return at == states.end() ? Verdict{} : fit(fleet, pod, *at);
}

std::vector<Obstacle::Kind> kinds_of(const Verdict& verdict) {
  std::vector<Obstacle::Kind> kinds;
  for (const Obstacle& one : verdict.obstacles) kinds.push_back(one.kind);
  return kinds;
}

std::vector<std::string> device_names(const Verdict& verdict) {
  std::vector<std::string> names;
  for (const ClaimResult& result : verdict.devices) {
    for (const AllocatedDevice& device : result.devices) names.push_back(device.device);
  }
  return names;
}

}  // namespace neuron::fleet::test
