#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "agent/status/status_writer.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/status/nodes.h"

namespace neuron::status {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string node_name(int i) {
  return "ip-10-" + std::to_string(i / 250) + "-" + std::to_string(i % 250) + "-7.eu-north-1.compute.internal";
}

// A server that takes everything, and counts.
class CountingApi final : public kube::Api {
 public:
  int calls = 0;
  int events = 0;  // of them, of new events
  Result<kube::ApiReply> call(const kube::ApiCall& call) override {
    ++calls;
    if (call.method == kube::Method::create) ++events;
    return kube::ApiReply{200, call.method == kube::Method::get ? R"({"metadata":{"uid":"u"}})" : ""};
  }
  Result<kube::ApiReply> stream(const kube::ApiCall& /*call*/, const OnLine& /*on_line*/,
                                const std::stop_token& /*stop*/) override {
    return kube::ApiReply{200, ""};
  }
};

// What one server sees when the agents of 5,000 nodes start at the same moment: a node's calls by second, counted.
TEST(StatusStorm, FiveThousandStartsAreSpreadOverAMinute) {
  constexpr int kNodes = 5000, kSeconds = 61;
  const auto snapshot = snapshot_of(well_host(1, 0));
  std::array<int, kSeconds> looks{}, calls{};
  for (int i = 0; i < kNodes; ++i) {
    CountingApi api;
    fakes::FakeClock clock;
    StatusWriter writer(api, {.node = node_name(i), .seed = 1}, clock);
    writer.set(snapshot);
    const SteadyTime begin = clock.now();
    for (int turns = 0; turns < 5 && api.calls == 0; ++turns) {
      const milliseconds pause = writer.turn();
      if (api.calls == 0) clock.advance(pause);
    }
    const auto at = std::chrono::duration_cast<seconds>(clock.now() - begin).count();
    ASSERT_LT(at, kSeconds);
    ++looks[static_cast<std::size_t>(at)];
    calls[static_cast<std::size_t>(at)] += api.calls;
  }
  const int most = *std::max_element(looks.begin(), looks.end());
  const int least = *std::min_element(looks.begin(), looks.end() - 1);
  std::cout << "starts per second: least " << least << ", most " << most << "; calls per second at most "
            << *std::max_element(calls.begin(), calls.end()) << "\n";
  // 83 on average; of a Poisson distribution five sigmas are 45.
  EXPECT_LE(most, 130);
  EXPECT_GE(least, 40);
}

// The most common fault of a whole cluster is one of its image: no interface of any node reaches Neuron memory.
TEST(StatusStorm, ACommonCauseIsOneEventPerNode) {
  model::HostScan host = well_host(16, 16);
  for (model::EfaInterface& efa : host.efas) {
    efa.health =
        health::verdict(health::reasons::kNoPeerMemory,
                        efa.name + " (" + to_string(efa.bdf) + "): p2p is empty, no RDMA to and from Neuron memory");
  }
  for (model::NeuronDevice& device : host.devices) {  // asks for nothing
    device.health = health::verdict(health::reasons::kNoSignals,
                                    "neuron" + std::to_string(device.index) + ": the driver shows no health files");
  }
  CountingApi api;
  fakes::FakeClock clock;
  StatusWriter writer(api, {.node = "n1", .seed = 1}, clock);
  writer.set(snapshot_of(host));
  const SteadyTime begin = clock.now();
  while (clock.now() - begin < std::chrono::minutes(10)) clock.advance(std::max(writer.turn(), milliseconds(1)));
  EXPECT_EQ(api.events, 1);
}

TEST(StatusStorm, TheSpreadIsTheNamesAlone) {
  EXPECT_EQ(spread_of("n1", seconds(60)), spread_of("n1", seconds(60)));
  EXPECT_NE(spread_of("n1", seconds(60)), spread_of("n2", seconds(60)));
  for (int i = 0; i < 1000; ++i) {
    EXPECT_GE(spread_of(node_name(i), seconds(60)), seconds(0));
    EXPECT_LT(spread_of(node_name(i), seconds(60)), seconds(60));
  }
}

}  // namespace
}  // namespace neuron::status
