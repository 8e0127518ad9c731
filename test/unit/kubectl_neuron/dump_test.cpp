#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

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
  ASSERT_TRUE(write_dump(documents, path_));
  const auto again = read_dump(path_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(everything(*again), everything(documents));
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

}  // namespace
}  // namespace neuron::fleet
