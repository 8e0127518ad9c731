// /node of the real agent beside a simulated node and a kubelet, compared with what neuron-ls says of the same node.
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/report/node_report.h"
#include "test/fakes/paths.h"
#include "test/fakes/sanitized.h"
#include "test/fakes/tcp_client.h"
#include "test/integration/metrics_port.h"
#include "test/integration/node.h"
#include "test/integration/shell.h"
#include "test/unit/render/json_schema.h"

namespace neuron::fakes {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

// Command lines are not known to the agent.
json without_commands(json document) {
  for (json& device : document["devices"]) {
    if (!device["processes"].is_array()) continue;
    for (json& process : device["processes"]) process["command"] = nullptr;
  }
  return document;
}

class NodeDocument : public ::testing::Test {
 protected:
  NodeDocument() { node_.extra_arguments = {"--metrics-address", "127.0.0.1:0"}; }
  void start() {
    node_.start();
    port_ = metrics_port(node_);
    for (const auto& [resource, units] : {std::pair{kNeuron, 16}, {kCore, 64}, {kEfa, 16}}) {
      ASSERT_TRUE(node_.wait_allocatable(resource, units)) << node_.agent->log();
    }
  }
  [[nodiscard]] json ask() const {
    const HttpReply reply = http_get(port_, "/node");
    EXPECT_EQ(reply.status, 200) << reply.body;
    const auto document = test::parse_strictly(reply.body);
    EXPECT_TRUE(document) << reply.body;
    std::ifstream schema(source_dir() + "/docs/schema/neuron-ls-1.json");
    EXPECT_EQ(test::schema_violation(json::parse(schema), document.value_or(json())), "");
    const auto report = report::parse_node_report(reply.body);
    EXPECT_TRUE(report && node_report_json(*report, report::JsonLayout::one_line) == reply.body);
    return document.value_or(json());
  }
  // The first answer that `is_there` says true of.
  template <typename IsThere>
  json await(const IsThere& is_there) {
    const auto until = steady_clock::now() + kPatience;
    for (;;) {
      json document = ask();
      if (is_there(document) || steady_clock::now() > until) return document;
      static_cast<void>(node_.agent->wait(milliseconds(20)));
    }
  }
  [[nodiscard]] json neuron_ls() const {
    const Ended ended = run_line(bin_dir() + "/neuron-ls --output-format json --health --pods --root " +
                                 node_.host.path() + " --kubelet-dir " + node_.kubelet_dir);
    EXPECT_EQ(ended.status, 0) << ended.output;
    return test::parse_strictly(ended.output).value_or(json());
  }
  void expect_as_neuron_ls(const json& document) const {
    const json patch = json::diff(without_commands(neuron_ls()), without_commands(document));
    EXPECT_TRUE(patch.empty()) << patch.dump(2);
  }
  Node node_{"trn2.48xlarge"};
  std::uint16_t port_ = 0;
};

TEST_F(NodeDocument, IsWhatNeuronLsSaysWithAndWithoutPods) {
  node_.host.instance_id("i-0123456789abcdef0");
  start();
  const json idle = await([](const json& all) { return all["pods"].is_array(); });
  EXPECT_TRUE(idle["pods"].empty());
  expect_as_neuron_ls(idle);
  ASSERT_TRUE(node_.run("train", {{kCore, 6}, {kEfa, 2}}));
  ASSERT_TRUE(node_.run("whole", {{kNeuron, 4}}));
  const json held = await([](const json& all) { return all["pods"].size() == 2 && all["pods"][1]["pod"] == "whole"; });
  ASSERT_EQ(held["pods"].size(), 2U) << held["pods"];
  EXPECT_EQ(held["pods"][0]["pod"], "train");
  EXPECT_EQ(held["pods"][0]["core_ids"].size(), 6U);
  EXPECT_EQ(held["pods"][0]["efa_interfaces"].size(), 2U);
  EXPECT_EQ(held["pods"][1]["devices"].size(), 4U);
  expect_as_neuron_ls(held);
}

TEST_F(NodeDocument, ShowsWhatIsBroken) {
  start();
  node_.host.set("neuron3", "sram_ecc_uncorrected=1");
  const json broken = await([](const json& all) { return all["devices"][3]["health"]["state"] == "unhealthy"; });
  EXPECT_EQ(broken["devices"][3]["health"]["reason"], "sram_ecc_uncorrected");
  expect_as_neuron_ls(broken);
}

// Before it has asked the kubelet, the agent does not know that nothing is held.
TEST_F(NodeDocument, PodsAreUnknownWithoutAKubelet) {
  node_.host.write();
  node_.start_agent();
  port_ = metrics_port(node_);
  const auto until = steady_clock::now() + kPatience;
  while (http_get(port_, "/node").status == 503) {
    ASSERT_LT(steady_clock::now(), until) << node_.agent->log();
    static_cast<void>(node_.agent->wait(milliseconds(5)));
  }
  const json document = ask();
  EXPECT_TRUE(document["pods"].is_null());
  EXPECT_TRUE(document["devices"][0]["pods"].is_null());
  EXPECT_EQ(document["devices"].size(), 16U);
}

TEST_F(NodeDocument, CanBeTurnedOff) {
  node_.extra_arguments.insert(node_.extra_arguments.end(), {"--node-document", "off"});
  start();
  EXPECT_EQ(http_get(port_, "/node").status, 404);
  EXPECT_EQ(http_get(port_, "/metrics").status, 200);
}

// Clients that ask for nothing else all the time, with a new scan every 50 ms, delay no pod.
TEST_F(NodeDocument, DelaysNoPod) {
  start();
  const auto longest_of = [this](const std::string& prefix) {
    milliseconds longest{0};
    for (int i = 0; i < 10; ++i) {
      const auto begun = steady_clock::now();
      const auto pod = node_.run(prefix + std::to_string(i), {{kCore, 2}});
      EXPECT_TRUE(pod) << pod.error().message;
      longest = std::max(longest, std::chrono::ceil<milliseconds>(steady_clock::now() - begun));
    }
    return longest;
  };
  const milliseconds alone = longest_of("alone-");
  std::atomic<int> answers = 0;
  milliseconds asked{0};
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) answers += http_get(port_, "/node").status == 200 ? 1 : 0;
      });
    }
    asked = longest_of("asked-");
  }
  std::printf("longest admission %lld ms alone, %lld ms beside %d answers of /node\n",
              static_cast<long long>(alone.count()), static_cast<long long>(asked.count()), answers.load());
  EXPECT_GT(answers, 3);
  if (!kSanitized) {
    EXPECT_LE(asked, 2 * alone + milliseconds(500));
  }
}

}  // namespace
}  // namespace neuron::fakes
