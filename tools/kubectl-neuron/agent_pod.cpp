#include "tools/kubectl-neuron/agent_pod.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"
#include "agent/kube/api.h"
#include "tools/kubectl-neuron/items.h"

namespace neuron::fleet {
namespace {

using kube::list_of;
using kube::member;
using kube::text_of;
using nlohmann::json;

constexpr int kMaxPort = 65535;

const json* agent_container(const json& pod) {
  if (!text_of(pod, {"metadata", "labels", "app.kubernetes.io/name"}).starts_with("neuron-agent")) return nullptr;
  const json& containers = list_of(member(pod, "spec"), "containers");
  const auto found = std::ranges::find_if(
      containers, [](const json& container) { return text_of(container, "name") == "neuron-agent"; });
  return found == containers.end() ? nullptr : &*found;
}

bool is_ready(const json& pod) {
  return std::ranges::any_of(list_of(member(pod, "status"), "conditions"), [](const json& condition) {
    return text_of(condition, "type") == "Ready" && text_of(condition, "status") == "True";
  });
}

void read_port(AgentPod& agent, const json& container) {
  for (const json& port : list_of(container, "ports")) {
    const json& number = member(port, "containerPort");
    if (text_of(port, "name") != "metrics" || !number.is_number_integer()) continue;
    const auto value = number.get<std::int64_t>();
    if (value > 0 && value <= kMaxPort) agent.port = static_cast<int>(value);
  }
  for (const json& argument : list_of(container, "args")) {
    const bool is_tls =
        argument.is_string() && argument.get_ref<const std::string&>().starts_with("--metrics-tls-cert");
    if (is_tls) agent.scheme = "https";
  }
}

AgentPod agent_of(const json& pod, const json& container) {
  AgentPod agent;
  agent.pod_namespace = text_of(member(pod, "metadata"), "namespace");
  agent.name = text_of(member(pod, "metadata"), "name");
  agent.image = text_of(container, "image", 512);
  agent.is_ready = is_ready(pod);
  read_port(agent, container);
  return agent;
}

auto rank_of(const AgentPod& agent) {
  return std::tuple(!agent.is_ready, agent.pod_namespace != "kube-system", agent.pod_namespace, agent.name);
}

}  // namespace

std::string AgentPod::path(std::string_view page) const {
  return "/api/v1/namespaces/" + kube::percent_encoded(pod_namespace) + "/pods/" + scheme + ":" +
         kube::percent_encoded(name) + ":" + std::to_string(port) + "/proxy/" + std::string(page);
}

std::string AgentPod::version() const {
  const std::string_view text = std::string_view(image).substr(0, image.find('@'));
  const auto colon = text.rfind(':');
  const bool has_tag = colon != std::string_view::npos && text.find('/', colon) == std::string_view::npos;
  return has_tag ? std::string(text.substr(colon + 1)) : "";
}

std::map<std::string, AgentPod> agent_pods(const std::vector<std::string>& pages) {
  std::map<std::string, AgentPod> agents;
  for (const std::string& page : pages) {
    std::vector<std::pair<std::string, AgentPod>> found;
    const auto read = read_items(page, "the list of pods", {}, [&](const json& pod) {
      const json* container = agent_container(pod);
      const std::string node = text_of(member(pod, "spec"), "nodeName");
      if (container != nullptr && !node.empty()) found.emplace_back(node, agent_of(pod, *container));
    });
    if (!read) continue;
    for (const auto& [node, agent] : found) {
      if (!is_dns_label(agent.pod_namespace) || !is_dns_subdomain(agent.name)) continue;
      const auto known = agents.find(node);
      if (known == agents.end() || rank_of(agent) < rank_of(known->second)) agents.insert_or_assign(node, agent);
    }
  }
  return agents;
}

}  // namespace neuron::fleet
