// What `kubectl neuron nodes` and `pods` compute for a large fleet: processor time from the recorded answers to the
// text, beside a floor that only parses the same answers as JSON; in turn in one run. And the memory of a fleet of
// twice the nodes. Usage: fleet_bench [NODES], 500 by default; each is a trn1.32xlarge with 16 devices.

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "tools/kubectl-neuron/commands.h"

namespace {

using neuron::fleet::Documents;
using neuron::fleet::Kind;
using neuron::fleet::Output;

double processor_ms() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

double peak_mib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_maxrss) / 1024;
}

Documents fleet_of(int nodes) {
  constexpr int kPage = 500;
  const std::string body =
      neuron::test::node_document("trn1.32xlarge", {{"team", "job", {0, 1, 2, 3}, {"rdmap16s25", "rdmap16s26"}}});
  Documents documents;
  documents.read_at = "2026-11-26T12:00:00Z";
  for (int first = 0; first < nodes; first += kPage) {
    std::vector<nlohmann::json> objects;
    std::vector<nlohmann::json> pods;
    for (int i = first; i < std::min(nodes, first + kPage); ++i) {
      const std::string name = "node-" + std::to_string(i);
      objects.push_back(neuron::test::node_object(name, "trn1.32xlarge", {{"aws.amazon.com/neuron", 16}}));
      pods.push_back(neuron::test::agent_object(name));
      pods.push_back(
          neuron::test::pod_object("team", "job-" + std::to_string(i), name, {{"aws.amazon.com/neuron", 4}}));
      documents.agents[name] = {"kube-system/agent-" + name, body, ""};
    }
    documents.list(Kind::nodes).push_back(neuron::test::page_of(objects));
    documents.list(Kind::pods).push_back(neuron::test::page_of(pods));
  }
  return documents;
}

std::size_t parse_plainly(const Documents& documents) {
  std::size_t members = 0;
  for (const Kind kind : neuron::fleet::kAllKinds) {
    for (const std::string& page : documents.list(kind)) members += nlohmann::json::parse(page).size();
  }
  for (const auto& [node, answer] : documents.agents) members += nlohmann::json::parse(answer.body).size();
  return members;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kRounds = 7;
  const int nodes = argc > 1 ? std::max(1, std::atoi(argv[1])) : 500;
  const Documents documents = fleet_of(nodes);
  std::vector<double> plain, listed;
  std::size_t used = 0;
  for (int round = 0; round < kRounds; ++round) {
    const double begin = processor_ms();
    used += parse_plainly(documents);
    const double middle = processor_ms();
    const neuron::fleet::Fleet fleet = make_fleet(documents);
    used += nodes_listing(fleet, Output::table).size();
    plain.push_back(middle - begin);
    listed.push_back(processor_ms() - middle);
  }
  std::printf("%d nodes: %.0f ms, parsing alone %.0f ms, ratio %.2f; peak %.0f MiB (%zu)\n", nodes, median(listed),
              median(plain), median(listed) / median(plain), peak_mib(), used % 10);
  return 0;
}
