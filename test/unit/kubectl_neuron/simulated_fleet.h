#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/kubectl-neuron/documents.h"

namespace neuron::test {

// Objects as an API server lists them, for tests of kubectl-neuron; change members as a case needs.
[[nodiscard]] nlohmann::json node_object(const std::string& name, const std::string& instance_type,
                                         const std::map<std::string, int>& capacity = {});
// One container "main" with these limits; `node`: "" = waits.
[[nodiscard]] nlohmann::json pod_object(const std::string& pod_namespace, const std::string& name,
                                        const std::string& node, const std::map<std::string, int>& limits);
[[nodiscard]] nlohmann::json agent_object(const std::string& node);  // "kube-system/agent-<node>"

// What a container has, for the agent's document.
struct Use {
  std::string pod_namespace;
  std::string pod;
  std::vector<int> devices;  // whole
  std::vector<std::string> efas;
};

// The agent's document of a simulated node; `faults`: "neuron3 sram_ecc_uncorrected=1".
[[nodiscard]] std::string node_document(const std::string& instance_type, const std::vector<Use>& uses,
                                        const std::vector<std::pair<std::string, std::string>>& faults = {});

// A page of a list.
[[nodiscard]] std::string page_of(const std::vector<nlohmann::json>& items);

// Three nodes: "busy" (trn1.32xlarge, two pods, one of them badly placed, neuron3 unhealthy), "idle" (inf2.48xlarge),
// "silent" (trn2.48xlarge without an answer of its agent); and a pod that waits. Read at 2026-11-26T12:00:00Z.
[[nodiscard]] fleet::Documents three_nodes();

}  // namespace neuron::test
