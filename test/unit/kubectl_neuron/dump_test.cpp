#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <functional>

#include "agent/base/fd.h"
#include "agent/host/temporary_directory.h"
#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/dump.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Dump : public testing::Test {
 protected:
  std::unique_ptr<host::TemporaryDirectory> directory_ =
      host::TemporaryDirectory::make(host::temporary_place(0, 1)).value();
  std::string path_ = directory_->path() + "/fleet.tar.gz";
};

std::string everything(const Documents& documents) {
  const Fleet fleet = make_fleet(documents);
  return nodes_listing(fleet, Output::json) + pods_listing(fleet, {}, Output::json, "");
}

TEST_F(Dump, ReadBackShowsTheSame) {
  Documents documents = test::three_nodes();
  documents.unknown = {"events are not known: forbidden"};
  documents.partial = {"pods"};
  ASSERT_TRUE(write_dump(documents, path_));
  const auto again = read_dump(path_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(everything(*again), everything(documents));
  EXPECT_TRUE(make_fleet(*again).pods_partial);
  EXPECT_FALSE(make_fleet(*again).claims_partial);
  EXPECT_FALSE(write_dump(documents, path_));  // nothing is overwritten
}

TEST_F(Dump, OtherFilesAreRefusedWithAReason) {
  EXPECT_FALSE(read_dump(path_));
  ASSERT_TRUE(write_by_rename(path_, "no archive"));
  EXPECT_THAT(read_dump(path_).error().message, HasSubstr("fleet.tar.gz"));
  ASSERT_TRUE(write_by_rename(directory_->path() + "/dump.json", R"({"format":"kubectl-neuron-dump/9"})"));
  EXPECT_THAT(read_dump(directory_->path()).error().message,
              AllOf(HasSubstr("kubectl-neuron-dump/9"), HasSubstr("use the version that wrote it")));
}

TEST_F(Dump, NoFileOutsideIsRead) {
  ASSERT_TRUE(write_by_rename(directory_->path() + "/dump.json", R"({"format":"kubectl-neuron-dump/1","agents":{
      "n1":{"file":"../../etc/hostname"},"n2":{"file":"agents/7.json"},"n3":7}})"));
  const auto documents = read_dump(directory_->path());
  ASSERT_TRUE(documents) << documents.error().message;
  for (const auto& [node, answer] : documents->agents) {
    EXPECT_EQ(answer.body, "") << node;
    EXPECT_NE(answer.missing, "") << node;
  }
}

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
  EXPECT_THAT(text,
              HasSubstr("0/3 nodes are available: 1 Insufficient aws.amazon.com/neuron. no new claims to deallocate, "
                        "preemption: "));
  EXPECT_THAT(text, HasSubstr("cannot list resource"));
  const Fleet fleet = make_fleet(documents);
  ASSERT_EQ(fleet.claims.size(), 1U);
  ASSERT_EQ(fleet.classes.size(), 1U);
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

TEST_F(Dump, ParametersOfClaimsAreNotKept) {
  const Documents documents = foreign();
  for (const Kind kind : {Kind::claims, Kind::claim_templates}) {
    const auto page = kept_page(kind, documents.list(kind).back());
    ASSERT_TRUE(page);
    EXPECT_THAT(page->text, AllOf(HasSubstr("acme-class"), Not(HasSubstr("acme-secret"))));
  }
}

}  // namespace
}  // namespace neuron::fleet
