// What preparing and releasing a claim takes, without the API server's part, beside the floor: the same files written
// and renamed by nobody but the kernel. On a node with no other claim, and with every other core of it claimed.
// Absolute figures of this machine and of the directory's file system.
//   claims_bench [ROUNDS [DIRECTORY]]
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "agent/base/fd.h"
#include "plugin/dra/claim/claim_preparer.h"
#include "plugin/dra/claim/claim_record.h"
#include "test/fakes/fake_api.h"
#include "test/unit/dra/claim_texts.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin::dra {
namespace {

using Microseconds = std::chrono::duration<double, std::micro>;

// Counts the time that the server takes.
class TimedApi final : public kube::Api {
 public:
  [[nodiscard]] Result<kube::ApiReply> call(const kube::ApiCall& call) override {
    const auto begin = std::chrono::steady_clock::now();
    auto reply = server.call(call);
    taken += std::chrono::steady_clock::now() - begin;
    return reply;
  }
  [[nodiscard]] Result<kube::ApiReply> stream(const kube::ApiCall& call, const OnLine& on_line,
                                              const std::stop_token& stop) override {
    return server.stream(call, on_line, stop);
  }
  fakes::FakeApi server;
  std::chrono::steady_clock::duration taken{};
};

struct Node {
  explicit Node(std::string path)
      : directory(std::move(path)),
        store({"neuron.aws.com", directory + "/plugins", directory + "/cdi", "boot"}, [this] { return node; }),
        claims({"neuron.aws.com", "n1", {}, {}},
               {[this] { return node; },
                {},
                [](int, int) { return 0; },
                [](const MemoryGate::Job& job) { job(); },
                [](SteadyTime, const MemoryGate::Job&) {}},
               store, api, clock) {}

  [[nodiscard]] static std::string uid_of(int index) { return fmt::format("1f0a3c58-0000-4000-8000-{:012}", index); }
  [[nodiscard]] static std::vector<ClaimRef> ref(int index) {
    return {{"default", fmt::format("claim-{}", index), uid_of(index)}};
  }
  void put(int index, const std::vector<ResultText>& results) {
    const std::string name = fmt::format("claim-{}", index), pod = fmt::format("pod-{}", index);
    json claim = claim_json(name, uid_of(index), results);
    reserve_for(claim, pod, "uid-" + pod);
    api.server.put("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/" + name, claim);
    api.server.put("/api/v1/namespaces/default/pods/" + pod, pod_json(pod, "uid-" + pod, {{"main", {{name, ""}}}}));
  }
  // Microseconds; ends the program when it fails.
  template <typename Call>
  [[nodiscard]] double time(const Call& call) {
    api.taken = {};
    const auto begin = std::chrono::steady_clock::now();
    const std::string error = call();
    const auto end = std::chrono::steady_clock::now();
    if (!error.empty()) {
      fmt::print(stderr, "{}\n", error);
      std::exit(1);
    }
    return Microseconds(end - begin - api.taken).count();
  }
  [[nodiscard]] double prepare(int index) {
    return time([&] { return claims.prepare(ref(index), {}).begin()->second.error; });
  }
  [[nodiscard]] double release(int index) {
    return time([&] { return claims.unprepare(ref(index)).begin()->second; });
  }

  std::string directory;
  grant::NodeUnitsPtr node = node_of("trn2.48xlarge");
  TimedApi api;
  SystemClock clock;
  RecordStore store;
  ClaimPreparer claims;
};

void print(const char* what, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double part) {
    return values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
  };
  fmt::print("  {:<40} median {:>7.0f} us   p99 {:>7.0f} us   max {:>7.0f} us\n", what, at(0.5), at(0.99),
             values.back());
}

// The writes of one prepare: the list twice, the CDI file once.
double floor_of(const std::string& directory, std::size_t list_bytes, std::size_t cdi_bytes) {
  const std::string list(list_bytes, 'x'), cdi(cdi_bytes, 'x');
  const auto begin = std::chrono::steady_clock::now();
  (void)write_by_rename(directory + "/floor-list", list);
  (void)write_by_rename(directory + "/floor-cdi", cdi);
  (void)write_by_rename(directory + "/floor-list", list);
  return Microseconds(std::chrono::steady_clock::now() - begin).count();
}

// Claims `index` to be prepared and released `rounds` times.
void measure(Node& node, const char* what, int rounds, int index) {
  std::vector<double> prepare, again, release, floor;
  for (int i = 0; i < rounds; ++i) {
    prepare.push_back(node.prepare(index));
    again.push_back(node.prepare(index));
    const std::string cdi = node.directory + "/cdi/k8s.neuron.aws.com-claim_" + Node::uid_of(index) + ".json";
    floor.push_back(floor_of(node.directory, std::filesystem::file_size(node.directory + "/plugins/claims.json"),
                             std::filesystem::file_size(cdi)));
    release.push_back(node.release(index));
  }
  fmt::print("{}\n", what);
  print("prepare", prepare);
  print("floor: its three files", floor);
  print("prepare what is prepared", again);
  print("release", release);
}

int run(int rounds, const std::string& parent) {
  spdlog::set_level(spdlog::level::off);
  std::string directory = parent + "/claims-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return 1;
  {
    Node node(directory);
    node.put(1000, {{"chips", "neuron-group-0-15"}});
    node.put(1001, {{"chips", "neuron-device-0-core-0"}});
    measure(node, "one claim for all 16 devices, no others", rounds, 1000);
    int others = 0;
    for (int device = 0; device < 16; ++device) {
      for (int core = device == 0 ? 1 : 0; core < 4; ++core) {
        node.put(++others, {{"chips", fmt::format("neuron-device-{}-core-{}", device, core)}});
        (void)node.prepare(others);
      }
    }
    fmt::print("claims.json: {} bytes\n", std::filesystem::file_size(directory + "/plugins/claims.json"));
    measure(node, "one core, beside 63 claims for one core each", rounds, 1001);
  }
  std::filesystem::remove_all(directory);
  return 0;
}

}  // namespace
}  // namespace neuron::plugin::dra

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 500;
  return neuron::plugin::dra::run(std::max(rounds, 1), argc > 2 ? argv[2] : "/tmp");
}
