// Round trips over a unix socket: our Allocate and GetPreferredAllocation against an empty unary call on the same
// transport, and against the messages of a preferred allocation with nobody choosing. In one run, in rounds of random
// order, since a call that follows one to the other server pays for waking its threads; Allocate of a server that
// counts its calls for the metrics, too. Prints medians, 99th percentiles and their ratios.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "plugin/device/plugin_server.h"
#include "test/bench/empty_call.h"
#include "test/unit/grant/nodes.h"

namespace neuron {
namespace {

using model::Resource;

struct Measured {
  const char* name;
  std::function<double()> call;  // microseconds
  std::vector<double> times;

  [[nodiscard]] double at(double part) {
    std::sort(times.begin(), times.end());
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  }
};

double microseconds(const std::function<bool()>& call) {
  const auto start = std::chrono::steady_clock::now();
  if (!call()) {
    fmt::print(stderr, "a call failed\n");
    std::exit(1);
  }
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

template <std::size_t Count>
void take_turns(std::array<Measured, Count>& all, int rounds) {
  std::array<std::size_t, Count> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(7);
  for (int i = -rounds / 10; i < rounds; ++i) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t place : order) {
      const double time = all[place].call();
      if (i >= 0) all[place].times.push_back(time);  // the start warmed up
    }
  }
}

int run(int rounds) {
  bench::EmptyCall empty;
  const SystemClock clock;
  holdings::CheckpointVersion version = 0;
  const auto next_version = [&version] { return ++version; };
  plugin::Allocations allocations({}, next_version, clock);
  const auto node = node_of("trn2.48xlarge");
  allocations.set_node(node);
  plugin::AdmissionGate admissions(clock, next_version, [] {});
  plugin::PreStartGate pre_start(
      allocations, [](int, int) { return std::nullopt; }, [](const plugin::PreStartGate::Job&) {},
      [](SteadyTime, const plugin::PreStartGate::Job&) {}, clock);
  const auto events = plugin::EventQueue::open();
  if (!events) return 1;
  auto server = plugin::PluginServer::start(Resource::neuron, empty.directory(), "neuron.sock",
                                            {allocations, admissions, pre_start, **events});
  plugin::CallFigures figures;
  auto counting = plugin::PluginServer::start(Resource::neuron, empty.directory(), "counted.sock",
                                              {allocations, admissions, pre_start, **events, &figures});
  if (!server || !counting) return 1;
  const auto ours = bench::connect(empty.directory() + "/neuron.sock");
  const auto counted = bench::connect(empty.directory() + "/counted.sock");

  v1beta1::PreferredAllocationRequest prefer;
  auto* wish = prefer.add_container_requests();
  for (const std::string& id : ids(*node, Resource::neuron)) wish->add_available_deviceids(id);
  wish->set_allocation_size(4);
  v1beta1::AllocateRequest allocate;
  auto* four = allocate.add_container_requests();
  for (const char* id : {"0", "1", "2", "3"}) four->add_devices_ids(id);

  const auto call_prefer = [&] {
    grpc::ClientContext context;
    v1beta1::PreferredAllocationResponse response;
    return ours->GetPreferredAllocation(&context, prefer, &response).ok();
  };
  const auto call_allocate = [&](const auto& stub) {
    grpc::ClientContext context;
    v1beta1::AllocateResponse response;
    return stub->Allocate(&context, allocate, &response).ok();
  };
  std::array all = {
      Measured{"empty unary call", [&] { return empty.microseconds(); }, {}},
      Measured{"its messages, no choice", [&] { return empty.microseconds(prefer); }, {}},
      Measured{"GetPreferredAllocation", [&] { return microseconds(call_prefer); }, {}},
      Measured{"Allocate", [&] { return microseconds([&] { return call_allocate(ours); }); }, {}},
      Measured{"Allocate, counted", [&] { return microseconds([&] { return call_allocate(counted); }); }, {}},
  };
  take_turns(all, rounds);
  fmt::print("{:<24} {:>12} {:>8} {:>12} {:>8}\n", "call", "median us", "ratio", "p99 us", "ratio");
  for (Measured& measured : all) {
    fmt::print("{:<24} {:>12.1f} {:>8.2f} {:>12.1f} {:>8.2f}\n", measured.name, measured.at(0.5),
               measured.at(0.5) / all[0].at(0.5), measured.at(0.99), measured.at(0.99) / all[0].at(0.99));
  }
  server->reset();
  counting->reset();
  return 0;
}

}  // namespace
}  // namespace neuron

int main(int argc, char** argv) {
  return neuron::run(argc > 1 ? std::atoi(argv[1]) : 5000);
}
