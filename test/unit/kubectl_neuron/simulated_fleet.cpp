#include "test/unit/kubectl_neuron/simulated_fleet.h"

#include "agent/health/assess.h"
#include "agent/host/fs_root.h"
#include "agent/host/scanner.h"
#include "agent/report/node_report.h"
#include "test/fakes/fake_host.h"

namespace neuron::test {

using nlohmann::json;

namespace {

json amounts(const std::map<std::string, int>& values) {
  json object = json::object();
  for (const auto& [name, value] : values) object[name] = std::to_string(value);
  return object;
}

constexpr const char* kCreated = "2026-11-20T12:00:00Z";

}  // namespace

json node_object(const std::string& name, const std::string& instance_type,
                 const std::map<std::string, int>& capacity) {
  json status = {{"capacity", amounts(capacity)},
                 {"allocatable", amounts(capacity)},
                 {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
  return {{"metadata",
           {{"name", name},
            {"creationTimestamp", kCreated},
            {"labels", {{"node.kubernetes.io/instance-type", instance_type}}}}},
          {"spec", json::object()},
          {"status", std::move(status)}};
}

json pod_object(const std::string& pod_namespace, const std::string& name, const std::string& node,
                const std::map<std::string, int>& limits) {
  json spec = {{"containers", {{{"name", "main"}, {"resources", {{"limits", amounts(limits)}}}}}}};
  if (!node.empty()) spec["nodeName"] = node;
  return {{"metadata", {{"namespace", pod_namespace}, {"name", name}, {"creationTimestamp", "2026-11-26T11:00:00Z"}}},
          {"spec", std::move(spec)},
          {"status", {{"phase", node.empty() ? "Pending" : "Running"}}}};
}

json agent_object(const std::string& node) {
  json container = {{"name", "neuron-agent"},
                    {"image", "localhost/neuron-agent:0.1.0"},
                    {"ports", {{{"name", "metrics"}, {"containerPort", 8000}}}}};
  json metadata = {{"namespace", "kube-system"},
                   {"name", "agent-" + node},
                   {"labels", {{"app.kubernetes.io/name", "neuron-agent"}}}};
  json status = {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
  return {{"metadata", std::move(metadata)},
          {"spec", {{"nodeName", node}, {"containers", {std::move(container)}}}},
          {"status", std::move(status)}};
}

std::string node_document(const std::string& instance_type, const std::vector<Use>& uses,
                          const std::vector<std::pair<std::string, std::string>>& faults) {
  fakes::FakeHost host(instance_type);
  host.write();
  for (const auto& [target, action] : faults) host.set(target, action);
  const host::FsRoot root = host::FsRoot::open(host.path()).value();
  host::Scanner scanner(root, {});
  health::AssessMemory memory;
  model::HostScan scan = scanner.scan();
  auto empty = report::empty_lists(scan);
  report::NodeReport report =
      report::make_node_report(health::assess(std::move(scan), memory, {}).host, std::move(empty));
  report.pods.emplace();
  for (const Use& use : uses) {
    report::PodUse& one = report.pods->emplace_back();
    one.pod_namespace = use.pod_namespace;
    one.pod = use.pod;
    one.container = "main";
    one.devices.insert(use.devices.begin(), use.devices.end());
    one.efas.insert(use.efas.begin(), use.efas.end());
    for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
      if (one.devices.contains(report.host.devices[i].index)) {
        one.cores.insert(report.core_ids[i].begin(), report.core_ids[i].end());
      }
    }
  }
  return report::node_report_json(report, report::JsonLayout::one_line);
}

std::string page_of(const std::vector<json>& items) {
  json list = {{"items", json::array()}};
  for (const json& item : items) list["items"].push_back(item);
  return list.dump();
}

fleet::Documents three_nodes() {
  using fleet::Kind;
  fleet::Documents documents;
  documents.read_at = "2026-11-26T12:00:00Z";
  documents.default_namespace = "team";
  documents.list(Kind::nodes) = {
      page_of({node_object("silent", "trn2.48xlarge", {{"aws.amazon.com/neuron", 16}}),
               node_object("busy", "trn1.32xlarge", {{"aws.amazon.com/neuron", 16}, {"vpc.amazonaws.com/efa", 8}})}),
      page_of(
          {node_object("idle", "inf2.48xlarge", {{"aws.amazon.com/neuron", 12}}), node_object("web", "m7i.large")})};
  json waiting = pod_object("team", "waiting", "", {{"aws.amazon.com/neuron", 16}});
  waiting["status"]["conditions"] = {{{"type", "PodScheduled"},
                                      {"status", "False"},
                                      {"reason", "Unschedulable"},
                                      {"message", "0/4 nodes are available: 4 Insufficient aws.amazon.com/neuron."}}};
  documents.list(Kind::pods) = {
      page_of({pod_object("team", "train-0", "busy", {{"aws.amazon.com/neuron", 4}, {"vpc.amazonaws.com/efa", 2}}),
               pod_object("team", "train-1", "busy", {{"aws.amazon.com/neuron", 2}}), waiting,
               pod_object("other", "far", "silent", {{"aws.amazon.com/neuron", 8}}), agent_object("busy"),
               agent_object("idle"), agent_object("silent"), pod_object("team", "web", "web", {})})};
  const std::string busy = node_document(
      "trn1.32xlarge",
      {{"team", "train-0", {8, 9, 10, 11}, {"rdmap16s25", "rdmap16s26"}}, {"team", "train-1", {0, 5}, {}}},
      {{"neuron3", "sram_ecc_uncorrected=1"}});
  documents.agents["busy"] = {"kube-system/agent-busy", busy, ""};
  documents.agents["idle"] = {"kube-system/agent-idle", node_document("inf2.48xlarge", {}), ""};
  documents.agents["silent"] = {"kube-system/agent-silent", "", "the agent did not answer within 2000 ms"};
  for (const Kind kind : fleet::kAllKinds) {
    if (documents.list(kind).empty()) documents.list(kind) = {page_of({})};
  }
  return documents;
}

}  // namespace neuron::test
