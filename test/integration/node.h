#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "test/fakes/fake_host.h"
#include "test/fakes/fake_kubelet.h"
#include "test/integration/agent_process.h"

namespace neuron::fakes {

inline constexpr const char* kCore = "aws.amazon.com/neuroncore";
inline constexpr const char* kNeuron = "aws.amazon.com/neuron";
inline constexpr const char* kNeuronDevice = "aws.amazon.com/neurondevice";
inline constexpr const char* kEfa = "vpc.amazonaws.com/efa";
inline constexpr const char* kTensors =
    "stats/memory_usage/device_mem/tensors/total";    // below a core: no scan reads it
inline constexpr std::chrono::seconds kPatience{20};  // a deadline for waits, never a duration that is slept

// Waits until the agent's log contains `text`.
[[nodiscard]] inline bool wait_log(AgentProcess& agent, const std::string& text) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (agent.log().find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > until) return false;
    static_cast<void>(agent.wait(std::chrono::milliseconds(5)));
  }
  return true;
}

// One node: a simulated host, a kubelet stand-in, and the real agent between them.
struct Node {
  FakeHost host;
  std::string kubelet_dir;
  std::unique_ptr<fakes::FakeKubelet> kubelet;
  std::optional<AgentProcess> agent;
  std::vector<std::string> extra_arguments;
  std::string pod_resources_interval = "200ms";
  std::vector<std::string> extra_environment;  // of the agent: "NAME=value"

  explicit Node(const std::string& instance_type) : host(instance_type) {
    std::string pattern = "/tmp/neuron-kubelet-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    kubelet_dir = pattern;
  }
  ~Node() {
    agent.reset();
    kubelet.reset();
    std::error_code error;
    std::filesystem::remove_all(kubelet_dir, error);
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Node& start_kubelet(fakes::FakeKubeletOptions options = {}) {
    auto started = fakes::FakeKubelet::start(kubelet_dir, std::move(options));
    if (!started) {
      ADD_FAILURE() << started.error().message;
      std::abort();
    }
    kubelet = *std::move(started);
    return *this;
  }
  [[nodiscard]] std::vector<std::string> arguments() const {
    std::vector<std::string> words = {"--root",
                                      host.path(),
                                      "--kubelet-dir",
                                      kubelet_dir,
                                      "--scan-interval",
                                      "50ms",
                                      "--pod-resources-interval",
                                      pod_resources_interval};
    words.insert(words.end(), extra_arguments.begin(), extra_arguments.end());
    return words;
  }
  [[nodiscard]] std::string log_path() const { return kubelet_dir + "/agent.log"; }
  Node& start_agent() {
    std::vector<std::string> wrapper = extra_environment;
    if (!wrapper.empty()) wrapper.insert(wrapper.begin(), "env");
    agent.emplace(arguments(), log_path(), wrapper);
    return *this;
  }
  // Host written, kubelet up, agent up.
  Node& start() {
    host.write();
    return start_kubelet().start_agent();
  }

  [[nodiscard]] bool wait_allocatable(const std::string& resource, int count) {
    return kubelet->wait_for([&] { return kubelet->allocatable(resource) == count; }, kPatience);
  }
  [[nodiscard]] Result<sim::PodResult> run(const std::string& name, std::map<std::string, int> requests,
                                           std::vector<std::string> order = {}) {
    sim::PodSpec pod;
    pod.name = name;
    pod.containers.push_back({"main", sim::ContainerKind::app, std::move(requests), std::move(order), {}});
    return kubelet->admit(pod);
  }
  [[nodiscard]] bool wait_log(const std::string& text) { return fakes::wait_log(*agent, text); }
};

inline std::chrono::milliseconds took(const std::function<void()>& what) {
  const auto begin = std::chrono::steady_clock::now();
  what();
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
}

// Admitted, and its container started.
inline testing::AssertionResult starts(Node& node, const std::string& pod, std::map<std::string, int> requests) {
  const auto result = node.run(pod, std::move(requests));
  if (!result) return testing::AssertionFailure() << result.error().message;
  const std::string& error = result->containers.at(0).start_error;
  return error.empty() ? testing::AssertionSuccess() : testing::AssertionFailure() << error;
}

inline std::string env_of(const Result<sim::PodResult>& pod) {
  if (!pod) return "refused: " + pod.error().message;
  const auto& env = pod->containers.at(0).env;
  const auto found = env.find("NEURON_RT_VISIBLE_CORES");
  return found == env.end() ? "" : found->second;
}

}  // namespace neuron::fakes
