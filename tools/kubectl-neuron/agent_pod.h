#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace neuron::fleet {

// The pod of a node's agent, by the names of the manifests. Passive data.
struct AgentPod {
  std::string pod_namespace;
  std::string name;
  std::string image;
  std::string scheme = "http";  // of the metrics port: "http", "https"
  int port = 8000;
  bool is_ready = false;

  // The path of a page of the metrics port, through the API server.
  [[nodiscard]] std::string path(std::string_view page = "node") const;
  [[nodiscard]] std::string version() const;  // the image's tag; "" unknown
};

// By node, the agents among the pods in `pages` (documents.h): label app.kubernetes.io/name "neuron-agent…" and a
// container "neuron-agent". Of several on one node a ready one, then one in kube-system. Pure.
[[nodiscard]] std::map<std::string, AgentPod> agent_pods(const std::vector<std::string>& pages);

}  // namespace neuron::fleet
