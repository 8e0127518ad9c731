// The real agent beside the kubelet stand-in: start -> all registered, a restarted kubelet's socket -> all registered,
// and what the agent keeps in memory. Absolute figures of this machine, minimum and median over the rounds.
//   register_bench [ROUNDS]
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "test/fakes/fake_host.h"
#include "test/fakes/fake_kubelet.h"
#include "test/integration/agent_process.h"

namespace neuron {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;
constexpr std::chrono::seconds kPatience{20};

bool all_registered(fakes::FakeKubelet& kubelet) {
  return kubelet.allocatable("aws.amazon.com/neuron") == 16 && kubelet.allocatable("aws.amazon.com/neuroncore") == 64 &&
         kubelet.allocatable("vpc.amazonaws.com/efa") == 16;
}

void print(const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  fmt::print("{:<44} min {:>6.1f} ms   median {:>6.1f} ms   max {:>6.1f} ms\n", what, values.front(),
             values[values.size() / 2], values.back());
}

void print_memory(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS") || line.starts_with("RssAnon") || line.starts_with("Threads"))
      fmt::print("{}\n", line);
  }
}

int run(int rounds) {
  fakes::FakeHost host("trn2.48xlarge");
  host.write();
  std::string directory = "/tmp/register-bench-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return 1;
  auto kubelet = fakes::FakeKubelet::start(directory);
  if (!kubelet) return 1;
  std::optional<fakes::AgentProcess> agent;
  std::vector<double> start_ms;
  std::vector<double> restart_ms;
  const std::vector<std::string> arguments = {"--root", host.path(), "--kubelet-dir", directory};
  for (int i = 0; i < rounds; ++i) {
    agent.reset();
    if (!(*kubelet)->wait_for([&] { return !all_registered(**kubelet); }, kPatience)) return 1;
    const auto started = std::chrono::steady_clock::now();
    agent.emplace(arguments, directory + "/agent.log");
    if (!(*kubelet)->wait_for([&] { return all_registered(**kubelet); }, kPatience)) return 1;
    start_ms.push_back(Milliseconds(std::chrono::steady_clock::now() - started).count());
    (*kubelet)->go_down();
    // The new socket appears somewhere inside come_up(), so this is an upper bound.
    const auto back = std::chrono::steady_clock::now();
    if (!(*kubelet)->come_up()) return 1;
    if (!(*kubelet)->wait_for([&] { return all_registered(**kubelet); }, kPatience)) return 1;
    restart_ms.push_back(Milliseconds(std::chrono::steady_clock::now() - back).count());
  }
  print("start -> all registered (trn2.48xlarge)", start_ms);
  print("kubelet back -> all registered", restart_ms);
  print_memory(agent->pid());
  agent.reset();
  (*kubelet)->stop();
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  return 0;
}

}  // namespace
}  // namespace neuron

int main(int argc, char** argv) {
  return neuron::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 20);
}
