// What an anonymised dump keeps: no foreign name, and every answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "test/fakes/paths.h"
#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/dump.h"
#include "tools/kubectl-neuron/plan.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Names in any text of the documents.
std::string all_text(const Documents& documents) {
  std::string text = documents.default_namespace;
  for (const Kind kind : kAllKinds) {
    for (const std::string& page : documents.list(kind)) text += page;
  }
  for (const auto& [node, answer] : documents.agents) text += node + answer.pod + answer.body + answer.missing;
  for (const std::string& sentence : documents.unknown) text += sentence;
  return text;
}

Documents named() {
  Documents documents = test::three_nodes();
  json node = test::node_object("ip-10-1-2-3.ec2.internal", "trn2.48xlarge", {{"aws.amazon.com/neuron", 16}});
  node["metadata"]["labels"]["kubernetes.io/hostname"] = "ip-10-1-2-3.ec2.internal";
  node["metadata"]["labels"]["acme.example/squad"] = "rocket";
  node["spec"]["taints"] = {{{"key", "acme.example/squad"}, {"value", "rocket"}, {"effect", "NoSchedule"}}};
  json pod = test::pod_object("acme-secret", "launch-7", "", {{"aws.amazon.com/neuron", 1}});
  pod["spec"]["nodeSelector"] = {{"acme.example/squad", "rocket"}};
  pod["spec"]["tolerations"] = {{{"key", "acme.example/squad"}, {"operator", "Equal"}, {"value", "rocket"}}};
  documents.list(Kind::nodes).push_back(test::page_of({node}));
  documents.list(Kind::pods).push_back(test::page_of({pod}));
  documents.list(Kind::events) = {
      test::page_of({{{"metadata", {{"name", "e"}}},
                      {"involvedObject", {{"kind", "Pod"}, {"namespace", "acme-secret"}, {"name", "launch-7"}}},
                      {"message", "pod acme-secret/launch-7 does not fit on ip-10-1-2-3.ec2.internal."}}})};
  documents.unknown = {"claims of other namespaces than acme-secret are not shown"};
  documents.agents["ip-10-1-2-3.ec2.internal"] = {
      "kube-system/agent-x7k2p", test::node_document("trn1.2xlarge", {{"acme-secret", "launch-7", {0}, {}}}), ""};
  return documents;
}

TEST(Anonymise, NoNameIsLeftAndEqualNamesStayEqual) {
  Documents documents = named();
  anonymise(documents);
  const std::string text = all_text(documents);
  for (const char* name : {"acme", "rocket", "launch-7", "ip-10-1-2-3", "train-0", "silent", "x7k2p"}) {
    EXPECT_THAT(text, Not(HasSubstr(name)));
  }
  const Fleet fleet = make_fleet(documents);
  const Event& event = fleet.events.at(0);
  const Pod* pod = find_pod(fleet, event.object_namespace, event.object_name);
  ASSERT_NE(pod, nullptr);
  EXPECT_THAT(event.message, HasSubstr("pod " + pod->pod_namespace + "/" + pod->name + " does not fit on node-"));
  const auto node = std::ranges::find_if(fleet.nodes, [](const Node& one) { return !one.taints.empty(); });
  ASSERT_NE(node, fleet.nodes.end());
  EXPECT_EQ(node->labels.at("kubernetes.io/hostname"), node->name);
  EXPECT_EQ(node->instance_type, "trn2.48xlarge");
  EXPECT_EQ(node->labels.at(pod->node_selector.begin()->first), pod->node_selector.begin()->second);
  EXPECT_EQ(node->taints[0].key, pod->tolerations.at(0).key);
  EXPECT_EQ(node->taints[0].value, pod->tolerations.at(0).value);
  ASSERT_TRUE(node->report) << node->report_missing;
  EXPECT_EQ(node->report->pods->at(0).pod, pod->name);
}

TEST(Anonymise, CountsStay) {
  Documents documents = test::three_nodes();
  const auto sums = [](const Documents& some) {
    const std::string text = nodes_listing(make_fleet(some), Output::table);
    return text.substr(text.find("\n\n"));
  };
  const std::string before = sums(documents);
  anonymise(documents);
  EXPECT_EQ(sums(documents), before);
}

// A fleet with hardware of another driver, and sentences of others.
Documents foreign() {
  Documents documents = test::three_nodes();
  json pod = test::pod_object("team", "p", "", {{"aws.amazon.com/neuron", 1}, {"acme.example/fpga", 1}});
  pod["spec"]["resourceClaims"] = {{{"name", "acme-inner"}, {"resourceClaimName", "acme-claim"}}};
  pod["spec"]["containers"][0]["resources"]["claims"] = {{{"name", "acme-inner"}, {"request", "acme-request"}}};
  pod["metadata"]["labels"] = {{"app.kubernetes.io/name", "neuron-agent"}};
  pod["spec"]["containers"][0]["image"] = "acme.example:5000/agent";
  pod["spec"]["containers"][0]["args"] = {"--node-name=acme-host"};
  documents.list(Kind::pods).push_back(test::page_of({pod}));
  const json devices = {{"requests", {{{"name", "acme-request"}, {"exactly", {{"deviceClassName", "acme-class"}}}}}},
                        {"config", {{{"opaque", {{"parameters", {{"token", "acme-secret"}}}}}}}}};
  const json result = {
      {"request", "acme-request"}, {"driver", "fpga.acme.example"}, {"pool", "acme-pool"}, {"device", "acme-card"}};
  documents.list(Kind::claims)
      .push_back(test::page_of(
          {{{"metadata", {{"name", "acme-claim"}, {"namespace", "team"}}},
            {"spec", {{"devices", devices}}},
            {"status", {{"allocation", {{"devices", {{"results", {result}}, {"config", devices["config"]}}}}}}}}}));
  documents.list(Kind::claim_templates)
      .push_back(test::page_of(
          {{{"metadata", {{"name", "acme-template"}, {"namespace", "team"}}},
            {"spec", {{"metadata", {{"labels", {{"acme", "acme"}}}}}, {"spec", {{"devices", devices}}}}}}}));
  const json selector = {{"cel", {{"expression", "device.attributes['acme.example'].x == 1"}}}};
  documents.list(Kind::device_classes)
      .push_back(
          test::page_of({{{"metadata", {{"name", "acme-class"}}},
                          {"spec", {{"selectors", {selector}}, {"extendedResourceName", "acme.example/fpga"}}}}}));
  const json card = {{"name", "acme-card"}, {"attributes", {{"acme", {{"string", "acme"}}}}}};
  documents.list(Kind::slices)
      .push_back(test::page_of(
          {{{"metadata", {{"name", "acme-slice"}}},
            {"spec", {{"driver", "fpga.acme.example"}, {"pool", {{"name", "acme-pool"}}}, {"devices", {card}}}}}}));
  documents.list(Kind::events) = {test::page_of(
      {{{"metadata", {{"name", "e"}}},
        {"involvedObject", {{"kind", "Pod"}, {"namespace", "team"}, {"name", "p"}}},
        {"message",
         "Failed to pull image \"acme.example:5000/llm:1\" from 10.9.8.7: 0/3 nodes are available: 1 Insufficient "
         "aws.amazon.com/neuron. no new claims to deallocate, preemption: 0/3 nodes"}}})};
  documents.unknown = {
      "events are not known: events is forbidden: User \"arn:aws:iam::123456789012:user/alice\" cannot "
      "list resource"};
  return documents;
}

TEST(Anonymise, OfForeignTextsOnlyKnownWordsAreLeft) {
  Documents documents = foreign();
  anonymise(documents);
  const std::string text = all_text(documents);
  for (const char* name : {"acme", "alice", "123456789012", "10.9.8.7", "5000", "llm", "token"})
    EXPECT_THAT(text, Not(HasSubstr(name)));
  EXPECT_THAT(text, AllOf(HasSubstr("cannot list resource"),
                          HasSubstr("0/3 nodes are available: 1 Insufficient aws.amazon.com/neuron. no new claims to "
                                    "deallocate, preemption: ")));
  const Fleet fleet = make_fleet(documents);
  ASSERT_EQ(std::pair(fleet.claims.size(), fleet.classes.size()), std::pair(std::size_t{1}, std::size_t{1}));
  EXPECT_EQ(fleet.claims[0].requests.at(0).device_class, fleet.classes[0].name);
  EXPECT_EQ(fleet.claims[0].requests.at(0).name, fleet.claims[0].devices.at(0).request);
  const auto pod = std::ranges::find_if(fleet.pods, [](const Pod& one) { return !one.claims.empty(); });
  ASSERT_NE(pod, fleet.pods.end());
  EXPECT_EQ(pod->claims[0].claim, fleet.claims[0].name);
  EXPECT_EQ(pod->containers[0].claims.at(0), pod->claims[0].name);
  EXPECT_TRUE(pod->containers[0].requests.contains(fleet.classes[0].extended_resource));
}

// The value with that text in the place of each string, but what `keeps` says of its path.
json with_secrets(const json& value, const std::string& path, const std::function<bool(const std::string&)>& keeps) {
  if (value.is_string()) return keeps(path) ? value : json("sekrit-" + std::to_string(path.size()));
  if (!value.is_structured()) return value;
  json out = value.is_array() ? json::array() : json::object();
  for (const auto& [key, member] : value.items()) {
    if (value.is_array()) {
      out.push_back(with_secrets(member, path, keeps));
    } else {
      out[key] = with_secrets(member, path + "." + key, keeps);
    }
  }
  return out;
}

TEST(Anonymise, NoStringOfAnAgentsDocumentIsTakenOver) {
  Documents documents = test::three_nodes();
  AgentAnswer& answer = documents.agents.at("busy");
  json document = json::parse(answer.body);
  // What a reader refuses in another form, and the serial number, of which there are others.
  const auto keeps = [](const std::string& path) {
    constexpr std::array<std::string_view, 9> kEnds = {".format", ".origin",    ".state",         ".family", ".bdf",
                                                       ".layout", ".bdf.value", ".pci_device_id", ".cpus"};
    return path.ends_with("cpus.value") || path.ends_with("physical_cores.health") ||
           path.ends_with("nearest_efa_interfaces") || path.ends_with("efa_interfaces.name") ||
           std::ranges::any_of(kEnds, [&](std::string_view end) { return path.ends_with(end); });
  };
  document["devices"][0]["processes"] = {{{"pid", 7}, {"command", "sekrit-train"}}};
  document["devices"][0]["health"] = {{"state", "unhealthy"}, {"reason", "x"}, {"sentence", "x"}, {"action", "x"}};
  document["devices"][1]["signals"]["unhealthy_components"] = {"x"};
  document["devices"][1]["problems"] = {"x"};
  document["host"]["health"] = document["devices"][0]["health"];
  document["problems"] = {"x"};
  document["efa_interfaces"][0]["peer_memory"] = "x";
  document = with_secrets(document, "", keeps);
  document["devices"][0]["health"]["sentence"] = "sekrit and 3 devices failed";
  document["sekrit-key"] = "sekrit";
  document["devices"][0]["sekrit-key"] = {{"sekrit-key", 1}};
  document["efa_interfaces"][1]["name"] = "sekrit-interface";
  for (json& device : document["devices"]) device["nearest_efa_interfaces"] = {"sekrit-interface"};
  answer.body = document.dump();
  answer.metrics =
      "neuroncore_utilization_ratio{neuroncore=\"1\"} 0.5\nneuroncore_utilization_ratio{neuroncore=\"sekrit\"} 1\n"
      "node_amazonefa_rx_bytes{device=\"sekrit-interface\"} 5\nhardware_ecc_events_total{neuron_device_index=\"1\","
      "event_type=\"sekrit\"} 1\n";
  anonymise(documents);
  std::string text = all_text(documents);
  for (const auto& [node, one] : documents.agents) text += one.metrics;
  EXPECT_EQ(text.find("sekrit"), std::string::npos)
      << text.substr(std::max<std::size_t>(text.find("sekrit"), 300) - 300, 400);
  const Fleet fleet = make_fleet(documents);
  const auto with_report = std::ranges::count_if(fleet.nodes, [](const Node& node) { return node.report.has_value(); });
  EXPECT_EQ(with_report, 2) << "it can still be read";
  const auto busy = std::ranges::find_if(documents.agents, [](const auto& one) { return !one.second.metrics.empty(); });
  ASSERT_NE(busy, documents.agents.end());
  EXPECT_THAT(busy->second.metrics, AllOf(HasSubstr("{neuroncore=\"1\"} 0.5"), HasSubstr("{device=\"interface-")));
  EXPECT_THAT(busy->second.body, HasSubstr("removed and 3 devices failed"));
}

TEST(Anonymise, NoStringOfAnObjectIsTakenOver) {
  Documents documents = test::three_nodes();
  for (const Kind kind : kAllKinds) {
    for (std::string& page : documents.list(kind)) {
      page = with_secrets(json::parse(page), "", [](const std::string&) { return false; }).dump();
    }
  }
  documents.agents.clear();
  anonymise(documents);
  const std::string text = all_text(documents);
  EXPECT_EQ(text.find("sekrit"), std::string::npos)
      << text.substr(std::max<std::size_t>(text.find("sekrit"), 300) - 300, 400);
}

TEST(Anonymise, WhatKubernetesItselfWritesStays) {
  Documents documents = test::three_nodes();
  json node = test::node_object("n", "trn1.32xlarge", {{"aws.amazon.com/neuron", 16}});
  node["status"]["allocatable"]["memory"] = "519619376Ki";
  node["spec"]["taints"] = {{{"key", "node.kubernetes.io/not-ready"}, {"effect", "NoExecute"}}};
  node["status"]["nodeInfo"] = {{"kubeletVersion", "v1.37.0-eks-sekrit"}};
  json pod = test::pod_object("team", "p", "", {{"aws.amazon.com/neuron", 1}});
  pod["status"]["phase"] = "Failed";
  pod["status"]["reason"] = "OutOfcpu";
  documents.list(Kind::nodes) = {test::page_of({node})};
  documents.list(Kind::pods) = {test::page_of({pod})};
  anonymise(documents);
  EXPECT_THAT(all_text(documents),
              AllOf(HasSubstr("\"v1.37.0\""), HasSubstr("519619376Ki"), HasSubstr("NoExecute"), HasSubstr("OutOfcpu"),
                    HasSubstr("2026-11-20T12:00:00Z"), HasSubstr("node.kubernetes.io/not-ready")));
}

// ---- Answers of an anonymised dump

json with_amount(json node, const char* name, const char* amount) {
  node["status"]["allocatable"][name] = node["status"]["capacity"][name] = amount;
  return node;
}

// Other vendors' resources, taints and labels with domains, and what the scheduler says of them.
Documents with_vendors() {
  Documents documents;
  documents.read_at = "2026-11-26T12:00:00Z";
  json large = test::node_object("zeta", "trn1.32xlarge", {{"aws.amazon.com/neuron", 16}, {"cpu", 96}, {"pods", 20}});
  json small = test::node_object("10", "trn1.2xlarge", {{"aws.amazon.com/neuron", 1}, {"cpu", 8}});
  large = with_amount(with_amount(large, "nvidia.com/gpu", "2"), "memory", "1e12");
  small["spec"]["taints"] = {{{"key", "squad.acme.example/only"}, {"value", "red"}, {"effect", "NoSchedule"}},
                             {{"key", "karpenter.sh/disrupted"}, {"effect", "NoSchedule"}}};
  large["metadata"]["labels"]["acme.example/rack"] = "r7";
  documents.list(Kind::nodes) = {test::page_of({large, small})};
  std::vector<json> pods = {test::pod_object("team", "train", "zeta", {{"aws.amazon.com/neuron", 8}})};
  for (const char* card : {"nvidia.com/gpu", "example.com/fpga", "nodomain"}) {
    json pod = test::pod_object("team", "with-" + std::string(card, 2), "", {{"aws.amazon.com/neuron", 4}, {card, 1}});
    json field = {{"key", "metadata.name"}, {"operator", "In"}, {"values", {"zeta"}}};
    if (card[0] == 'e') field.update({{"operator", "NotIn"}, {"values", {"10"}}});
    const json terms = {{"nodeSelectorTerms", {{{"matchFields", {field}}}}}};
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = terms;
    pod["spec"]["nodeSelector"] = {{"acme.example/rack", "r7"}};
    pod["status"]["conditions"] = {{{"type", "PodScheduled"},
                                    {"status", "False"},
                                    {"reason", "Unschedulable"},
                                    {"message", std::string("0/2 nodes are available: 1 Insufficient ") + card +
                                                    ", 1 node(s) had untolerated taint {karpenter.sh/disrupted: }."}}};
    pods.push_back(std::move(pod));
  }
  documents.list(Kind::pods) = {test::page_of(pods)};
  return documents;
}

// A driver under another name, a class by its attributes, and claims with selectors.
Documents with_claims() {
  Documents documents;
  std::vector<json> devices;
  for (int i = 0; i < 4; ++i) {
    devices.push_back({{"name", "neuron-device-" + std::to_string(i)},
                       {"attributes",
                        {{"resourceType", {{"string", "neuron_device"}}},
                         {"deviceId", {{"int", i}}},
                         {"serial", {{"string", "00000000acme000" + std::to_string(i)}}},
                         {"networkNodeLayer1", {{"string", "nn-" + std::to_string(i / 2)}}},
                         {"resource.aws.com/devicegroup4_id", {{"string", "0000000000000001"}}}}}});
  }
  const std::string driver = "neuron.acme.example";
  const json pool = {{"name", "n1"}, {"generation", 1}, {"resourceSliceCount", 1}};
  documents.list(Kind::nodes) = {test::page_of({test::node_object("n1", "trn1.32xlarge")})};
  documents.list(Kind::slices) = {
      test::page_of({{{"metadata", {{"name", "s"}}},
                      {"spec", {{"driver", driver}, {"nodeName", "n1"}, {"pool", pool}, {"devices", devices}}}}})};
  const std::string own = "device.attributes['" + driver + "']";
  const auto selected = [](const std::string& expression) { return json{{{"cel", {{"expression", expression}}}}}; };
  documents.list(Kind::device_classes) = {test::page_of(
      {{{"metadata", {{"name", "acme-neuron"}}},
        {"spec",
         {{"selectors",
           selected("device.driver == \"" + driver + "\" && " + own + ".resourceType == 'neuron_device'")}}}}})};
  std::vector<json> templates, pods;
  const std::vector<std::string> expressions = {
      own + ".deviceId < 2", own + ".serial == '00000000acme0003'", own + ".networkNodeLayer1 == 'nn-1'",
      own + ".serial == '00000000acme0009'", "device.attributes['resource.aws.com'].devicegroup4_id == 'x'"};
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    const std::string name = "acme-" + std::to_string(i);
    const json request = {{"name", "r"},
                          {"exactly", {{"deviceClassName", "acme-neuron"}, {"selectors", selected(expressions[i])}}}};
    const json spec = {{"devices", {{"requests", {request}}}}};
    templates.push_back({{"metadata", {{"name", name}, {"namespace", "team"}}}, {"spec", {{"spec", spec}}}});
    json pod = test::pod_object("team", name, "", {});
    pod["spec"]["resourceClaims"] = {{{"name", "c"}, {"resourceClaimTemplateName", name}}};
    pod["spec"]["containers"][0]["resources"]["claims"] = {{{"name", "c"}}};
    pods.push_back(std::move(pod));
  }
  documents.list(Kind::claim_templates) = {test::page_of(templates)};
  documents.list(Kind::pods) = {test::page_of(pods)};
  return documents;
}

// Numbers and exit statuses, without names.
json answers_of(const Documents& documents) {
  const Fleet fleet = make_fleet(documents);
  json all = {{"nodes", json::array()}, {"why", json::array()}, {"plan", json::array()}};
  json nodes = json::parse(nodes_listing(fleet, Output::json));
  for (json& node : nodes["nodes"]) {
    for (const char* name : {"name", "agent_pod", "unknown"}) node[name] = node[name].is_null();
    all["nodes"].push_back(node);
  }
  for (const Pod& pod : fleet.pods) {
    const Why one = why(fleet, pod);
    json answer = {{"status", exit_status(one)}, {"notes", one.notes.size()}, {"changes", json::array()}};
    for (const NodeGroup& group : one.nodes) {
      answer["nodes"].push_back({group.nodes.size(), to_string(group.answer)});
      for (const Obstacle& obstacle : group.obstacles) answer["nodes"].push_back(to_string(obstacle.kind));
    }
    for (const Explanation& said : one.scheduler) answer["said"].push_back({said.nodes, said.meaning});
    for (const Change& change : one.changes) answer["changes"].push_back(change.kind);
    all["why"].push_back(std::move(answer));
    if (!asks_for_hardware(pod)) continue;
    const Plan three = plan(fleet, {{{made_again(pod), 3, false, {}}}, {}}, 0, nullptr, 50);
    json planned = json::parse(plan_json(three));
    for (json& group : planned["groups"]) {
      for (const char* name : {"pod", "obstacles"}) group.erase(name);
      for (json& node : group["nodes"]) node.erase("node");
    }
    for (json& type : planned["types"]) type.erase("why");
    for (const char* list : {"notes", "not_counted"}) planned[list] = planned[list].size();
    planned["stranded"] = three.stranded ? json(three.stranded->size()) : json();
    planned["status"] = exit_status(three);
    all["plan"].push_back(std::move(planned));
  }
  // Some namespaces keep their names.
  for (const char* list : {"why", "plan"}) std::sort(all[list].begin(), all[list].end());
  return all;
}

TEST(Anonymise, AnswersStay) {
  auto recorded = read_dump(fakes::source_dir() + "/test/fixtures/kubectl-neuron/three-kinds.tar.gz", false);
  ASSERT_TRUE(recorded) << recorded.error().message;
  for (Documents documents : {test::three_nodes(), named(), with_vendors(), with_claims(), *std::move(recorded)}) {
    const json before = answers_of(documents);
    anonymise(documents);
    EXPECT_THAT(all_text(documents), Not(HasSubstr("acme")));
    EXPECT_EQ(json::diff(before, answers_of(documents)).dump(1), "[]") << all_text(documents).substr(0, 10'000);
  }
}

TEST(Anonymise, ANameKeepsADomainWhereItHasOne) {
  Documents documents = with_vendors();
  anonymise(documents);
  const Fleet fleet = make_fleet(documents);
  EXPECT_EQ(fleet.nodes.at(0).name, "node-1");
  EXPECT_EQ(fleet.nodes[0].instance_type, "trn1.2xlarge") << "in the order of the names";
  std::vector<std::string> names;
  for (const Pod& pod : fleet.pods)
    for (const auto& [name, amount] : pod.general) names.push_back(name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("example.com/resource-1", "example.com/resource-2", "resource-3"));
  EXPECT_THAT(all_text(documents),
              AllOf(HasSubstr("Insufficient example.com/resource-"), HasSubstr("{karpenter.sh/disrupted: }")));
}

TEST(Anonymise, ParametersOfClaimsAreNotKept) {
  const Documents documents = foreign();
  for (const Kind kind : {Kind::claims, Kind::claim_templates}) {
    const auto page = kept_page(kind, documents.list(kind).back());
    ASSERT_TRUE(page);
    EXPECT_THAT(page->text, AllOf(HasSubstr("acme-class"), Not(HasSubstr("acme-secret"))));
  }
}

}  // namespace
}  // namespace neuron::fleet
