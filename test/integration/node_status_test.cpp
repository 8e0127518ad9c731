// The real agent that tells an API server of its node: one that behaves, one that never answers, and none.
#include <netinet/in.h>
#include <sys/socket.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "agent/base/fd.h"
#include "agent/kube/api_client.h"
#include "test/fakes/fake_api_server.h"
#include "test/fakes/sanitized.h"
#include "test/fakes/tcp_client.h"
#include "test/integration/metrics_port.h"
#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

std::vector<std::string> node_status_arguments(const kube::ApiPlaces& places) {
  return {"--node-status", "on",          "--node-name",      "node-1",
          "--api-server",  places.url,    "--api-token-file", places.token_file,
          "--api-ca-file", places.ca_file};
}

class NodeStatus : public ::testing::Test {
 protected:
  explicit NodeStatus(const std::string& instance_type = "trn1.32xlarge") : node_(instance_type) {
    EXPECT_TRUE(cluster_.is_up());
    const Json place{{"topology.kubernetes.io/zone", "us-east-1a"}, {"topology.kubernetes.io/region", "us-east-1"}};
    Json node{{"metadata", {{"name", "node-1"}, {"labels", place}}}};
    for (int i = 0; i < 50; ++i) {  // as many as a kubelet tells, most of the object's size
      const std::string name = "registry.example.com/team/image-" + std::to_string(i);
      node["status"]["images"].push_back(
          {{"names", {name + "@sha256:" + std::string(64, 'a'), name + ":v1.2.3"}}, {"sizeBytes", 123456789}});
    }
    EXPECT_TRUE(api_.call({.method = kube::Method::create, .path = "/api/v1/nodes", .body = node.dump()}));
    node_.extra_arguments = node_status_arguments(cluster_.api_places());
  }
  Json get(const std::string& path) {
    const auto reply = api_.call({.path = path});
    return reply ? Json::parse(reply->body) : Json::object();
  }
  [[nodiscard]] std::string health() {
    const Json node = get("/api/v1/nodes/node-1");
    const Json conditions = node.value("/status/conditions"_json_pointer, Json::array());
    return conditions.empty() ? "" : conditions[0].value("status", "") + " " + conditions[0].value("reason", "");
  }
  // False when it does not hold within kPatience.
  [[nodiscard]] bool comes(const std::function<bool()>& condition) {
    const auto until = Clock::now() + kPatience;
    while (!condition()) {
      if (Clock::now() > until) return false;
      static_cast<void>(node_.agent->wait(std::chrono::milliseconds(5)));
    }
    return true;
  }
  [[nodiscard]] bool becomes(const std::string& condition) {
    return comes([&] { return health() == condition; });
  }
  void expect_ends() {
    const auto begin = Clock::now();
    node_.agent->signal(SIGTERM);
    EXPECT_EQ(node_.agent->wait(kPatience), 0);
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
  }

  // Of /proc/<pid>/status, "VmRSS:" or "RssAnon:".
  [[nodiscard]] std::size_t kib_of(const std::string& name) const {
    std::ifstream status("/proc/" + std::to_string(node_.agent->pid()) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(name)) return std::stoul(line.substr(name.size()));
    }
    return 0;
  }

  FakeApiServer cluster_{"fake_cluster.py"};
  kube::ApiClient api_{cluster_.api_places()};
  Node node_;
};

TEST_F(NodeStatus, TheStartupTaintGoesOnceTheResourcesAreAllocatable) {
  const auto patch = [&](const std::string& path, const Json& body) {
    const auto reply = api_.call({.method = kube::Method::merge_patch, .path = path, .body = body.dump()});
    EXPECT_TRUE(reply && reply->status == 200) << (reply ? reply->body : reply.error().message);
  };
  const std::string path = "/api/v1/nodes/node-1";
  const Json starting{{"key", "neuron-agent/starting"}, {"effect", "NoSchedule"}};
  patch(path, {{"spec", {{"taints", {starting, {{"key", "other"}, {"effect", "NoSchedule"}}}}}}});
  node_.extra_arguments.insert(node_.extra_arguments.end(), {"--startup-taint", "neuron-agent/starting:NoSchedule"});
  node_.host.write();
  node_.start_kubelet().start_agent();
  const auto taints = [&] { return get(path)["spec"]["taints"].size(); };
  patch(path + "/status",
        {{"status",
          {{"allocatable",
            {{"aws.amazon.com/neuron", "16"}, {"aws.amazon.com/neuroncore", "32"}, {"vpc.amazonaws.com/efa", "8"}}}}}});
  EXPECT_TRUE(comes([&] { return taints() == 1; }));
  EXPECT_EQ(get(path)["spec"]["taints"][0]["key"], "other") << node_.agent->log();
}

TEST_F(NodeStatus, AFaultAndItsEndAreTold) {
  node_.host.write();
  node_.host.set("neuron3", "sram_ecc_uncorrected=1");  // so that it does not wait at the start
  node_.start_kubelet().start_agent();
  ASSERT_TRUE(becomes("True SramEccUncorrected")) << node_.agent->log();
  const auto devices = "/metadata/labels/neuron-agent~1devices"_json_pointer;  // written after the condition
  EXPECT_TRUE(comes([&] { return get("/api/v1/nodes/node-1").value(devices, "") == "16"; })) << node_.agent->log();
  node_.host.set("neuron3", "heal");
  ASSERT_TRUE(becomes("False NeuronHasNoError")) << node_.agent->log();
  const auto broken = Clock::now();
  node_.host.set("neuron4", "mem_ecc_uncorrected=1");
  ASSERT_TRUE(becomes("True MemEccUncorrected")) << node_.agent->log();
  RecordProperty(
      "fault_to_condition_ms",
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - broken).count()));
  EXPECT_TRUE(comes([&] { return get("/api/v1/events")["items"].size() >= 3; }));
  std::vector<std::string> told;
  const Json events = get("/api/v1/events");
  for (const Json& event : events["items"]) told.push_back(event["reason"].get<std::string>());
  EXPECT_THAT(told, testing::UnorderedElementsAre("SramEccUncorrected", "Healthy", "MemEccUncorrected"));
  expect_ends();
}

TEST_F(NodeStatus, MetricsSayInWhichZoneItIs) {
  node_.extra_arguments.insert(node_.extra_arguments.end(), {"--metrics-address", "127.0.0.1:0"});
  node_.host.write();
  node_.host.set("neuron3", "sram_ecc_uncorrected=1");
  node_.start_kubelet().start_agent();
  const std::uint16_t port = metrics_port(node_);
  ASSERT_TRUE(becomes("True SramEccUncorrected")) << node_.agent->log();
  const std::string place = R"(availability_zone="us-east-1a",region="us-east-1")";
  const auto until = Clock::now() + kPatience;
  while (http_get(port, "/metrics").body.find(place) == std::string::npos) {
    ASSERT_LT(Clock::now(), until) << "no " << place;
    static_cast<void>(node_.agent->wait(std::chrono::milliseconds(100)));
  }
}

class NodeStatusOnALargeNode : public NodeStatus {
 protected:
  NodeStatusOnALargeNode() : NodeStatus("trn2.48xlarge") {}
};

TEST_F(NodeStatusOnALargeNode, MemoryStaysSmall) {
  if (kSanitized) GTEST_SKIP() << "which needs memory of its own";
  node_.extra_arguments.insert(node_.extra_arguments.end(), {"--metrics-address", "127.0.0.1:0"});
  node_.host.write();
  node_.host.set("neuron3", "sram_ecc_uncorrected=1");
  node_.start_kubelet().start_agent();
  ASSERT_TRUE(becomes("True SramEccUncorrected")) << node_.agent->log();
  EXPECT_TRUE(node_.wait_allocatable(kNeuron, 15));
  const std::size_t resident = kib_of("VmRSS:"), anonymous = kib_of("RssAnon:");
  std::cout << "resident " << resident << " KiB, of it anonymous " << anonymous << " KiB\n";
  EXPECT_LE(resident, std::size_t{20} << 10U);
  EXPECT_LE(anonymous, std::size_t{6} << 10U);
  expect_ends();
}

// Devices are served as fast, and the end is as fast, whatever the API server does.
TEST_F(NodeStatus, NothingWaitsForAServerThatNeverAnswers) {
  const Fd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(silent.get(), 8), 0);  // on a port of the kernel's choice; nobody accepts
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(silent.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  kube::ApiPlaces places = cluster_.api_places();
  places.url = "https://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  node_.extra_arguments = node_status_arguments(places);
  node_.host.write();
  node_.host.set("neuron3", "sram_ecc_uncorrected=1");
  node_.start_kubelet().start_agent();
  EXPECT_TRUE(node_.wait_allocatable(kNeuron, 15)) << node_.agent->log();
  node_.host.set("neuron3", "heal");
  EXPECT_TRUE(node_.wait_allocatable(kNeuron, 16));
  EXPECT_TRUE(node_.run("pod", {{kNeuron, 1}}));
  expect_ends();
}

TEST_F(NodeStatus, WithoutAServerOrATokenEverythingElseWorks) {
  for (const std::string server : {"https://127.0.0.1:1", ""}) {
    node_.extra_arguments = {"--node-status", "on", "--node-name", "node-1"};
    if (!server.empty()) node_.extra_arguments.insert(node_.extra_arguments.end(), {"--api-server", server});
    node_.host.write();
    node_.start_kubelet().start_agent();
    EXPECT_TRUE(node_.wait_allocatable(kNeuron, 16)) << node_.agent->log();
    if (server.empty()) {
      EXPECT_TRUE(node_.wait_log("node status not updated: "));
    }
    expect_ends();
    node_.kubelet.reset();
  }
}

}  // namespace
}  // namespace neuron::fakes
