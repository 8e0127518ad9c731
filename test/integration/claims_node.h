#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "agent/kube/api_client.h"
#include "test/fakes/fake_api_server.h"
#include "test/fakes/fake_dra_kubelet.h"
#include "test/fakes/fake_host.h"
#include "test/integration/agent_process.h"

namespace neuron::fakes {

inline constexpr const char* kDriver = "neuron.aws.com";
inline constexpr std::chrono::seconds kLong{20};  // a deadline for waits, never a duration that is slept

// One node that serves claims: a simulated host, a kubelet and an API server that behave, and the real agent between.
struct ClaimsNode {
  using Json = nlohmann::json;

  FakeHost host;
  FakeApiServer cluster{"fake_cluster.py"};
  kube::ApiClient api{cluster.api_places()};
  std::string kubelet_dir = "/tmp/dranode-XXXXXX";  // short: paths of sockets are
  std::optional<FakeDraKubelet> kubelet;
  std::optional<AgentProcess> agent;
  std::vector<std::string> extra_arguments;
  std::vector<std::string> extra_environment;  // of the agent: "NAME=value"

  explicit ClaimsNode(const std::string& instance_type) : host(instance_type) {
    if (::mkdtemp(kubelet_dir.data()) == nullptr || !cluster.is_up()) std::abort();
    for (const char* name : {"/plugins_registry", "/device-plugins", "/cdi"}) {
      std::filesystem::create_directory(kubelet_dir + name);
    }
    put("/api/v1/nodes", {{"metadata", {{"name", "node-1"}}}});
  }
  ~ClaimsNode() {
    agent.reset();
    kubelet.reset();
    std::error_code error;
    std::filesystem::remove_all(kubelet_dir, error);
  }
  ClaimsNode(const ClaimsNode&) = delete;
  ClaimsNode& operator=(const ClaimsNode&) = delete;

  [[nodiscard]] std::vector<std::string> arguments(const std::string& pod_uid) const {
    const kube::ApiPlaces places = cluster.api_places();
    std::vector<std::string> words = {
        "--mode",        "dra",         "--root",          host.path(), "--kubelet-dir",    kubelet_dir,
        "--cdi-dir",     cdi_dir(),     "--scan-interval", "50ms",      "--node-name",      "node-1",
        "--pod-uid",     pod_uid,       "--api-server",    places.url,  "--api-token-file", places.token_file,
        "--api-ca-file", places.ca_file};
    words.insert(words.end(), extra_arguments.begin(), extra_arguments.end());
    return words;
  }
  [[nodiscard]] std::string log_path() const { return kubelet_dir + "/agent.log"; }
  [[nodiscard]] std::string cdi_dir() const { return kubelet_dir + "/cdi"; }
  void start_agent() {
    std::vector<std::string> wrapper = extra_environment;
    if (!wrapper.empty()) wrapper.insert(wrapper.begin(), "env");
    agent.emplace(arguments("uid-1"), log_path(), wrapper);
  }
  // Host written, kubelet up, agent up.
  void start() {
    host.write();
    kubelet.emplace(kubelet_dir);
    start_agent();
  }

  // With a name in its metadata: created below `collection`.
  Json put(const std::string& collection, const Json& object) {
    return sent({kube::Method::create, collection, "", object.dump()});
  }
  Json get(const std::string& path, const std::string& query = "") {
    return sent({kube::Method::get, path, query, ""});
  }
  void remove(const std::string& path) { static_cast<void>(sent({kube::Method::remove, path, "", ""})); }
  [[nodiscard]] std::vector<Json> slices() { return get("/apis/resource.k8s.io/v1/resourceslices").at("items"); }

  [[nodiscard]] bool wait_for(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + kLong;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      static_cast<void>(agent->wait(std::chrono::milliseconds(10)));
    }
    return true;
  }
  [[nodiscard]] bool wait_registered() {
    return wait_for([this] { return kubelet->taken(kDriver) == 1; });
  }

 private:
  Json sent(const kube::ApiCall& call) {
    auto reply = api.call(call);
    if (!reply) {
      ADD_FAILURE() << reply.error().message;
      return {};
    }
    return Json::parse(reply->body);
  }
};

inline constexpr const char* kClaims = "/apis/resource.k8s.io/v1/namespaces/team/resourceclaims";

// A claim that a scheduler has allocated, for one request of the given devices.
inline nlohmann::json allocated(const std::string& name, const std::vector<std::string>& devices) {
  nlohmann::json results = nlohmann::json::array();
  for (const std::string& device : devices) {
    results.push_back({{"request", "chips"}, {"driver", kDriver}, {"pool", "node-1"}, {"device", device}});
  }
  return {{"metadata", {{"name", name}}},
          {"spec", {{"devices", {{"requests", {{{"name", "chips"}, {"exactly", {{"deviceClassName", kDriver}}}}}}}}}},
          {"status",
           {{"allocation", {{"devices", {{"results", results}}}}},
            {"reservedFor", {{{"resource", "pods"}, {"name", name + "-pod"}, {"uid", name + "-pod-uid"}}}}}}};
}

// The pod that uses it, in one container.
inline nlohmann::json pod_of(const std::string& claim) {
  return {{"metadata", {{"name", claim + "-pod"}, {"uid", claim + "-pod-uid"}}},
          {"spec",
           {{"nodeName", "node-1"},
            {"resourceClaims", {{{"name", "chips"}, {"resourceClaimName", claim}}}},
            {"containers", {{{"name", "main"}, {"resources", {{"claims", {{{"name", "chips"}}}}}}}}}}}};
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace neuron::fakes
