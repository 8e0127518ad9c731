// What one choice costs beside the round trip that carries it: every half of a node's devices free, or random halves of
// its cores; then larger nodes. An empty unary call is measured in between, so that the ratios hold on a busy machine.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>
#include <random>

#include "test/bench/empty_call.h"
#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;
using Chooser = std::function<allocator::Choice(const allocator::NodeTopology&, const allocator::ChooseRequest&)>;

double at(std::vector<double>& times, double share) {
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
}

struct Row {
  std::string name;
  int size = 0;
  std::size_t choices = 0;
  double median = 0;
  double p99 = 0;
};

struct Run {
  bench::EmptyCall empty;
  std::vector<double> calls;
  std::vector<Row> rows;
};

Run& run() {
  static Run all;
  return all;
}

// The call is that of the whole run, at its lower quartile: other programs can only make it longer.
void print_rows() {
  const double call = at(run().calls, 0.25);
  fmt::print("an empty call takes {:.1f} us\n", call);
  fmt::print("{:<50}{:>4}{:>9}{:>10}{:>10}{:>12}{:>10}\n", "", "size", "choices", "median us", "p99 us", "median/call",
             "p99/call");
  for (const Row& row : run().rows) {
    fmt::print("{:<50}{:>4}{:>9}{:>10.1f}{:>10.1f}{:>12.2f}{:>10.2f}\n", row.name, row.size, row.choices, row.median,
               row.p99, row.median / call, row.p99 / call);
  }
}

constexpr int kOwnSize = 0;  // each request as it is

void measure(const std::string& name, const allocator::NodeTopology& topology,
             std::vector<allocator::ChooseRequest>& requests, int size, const Chooser& choose) {
  constexpr std::size_t kChoicesPerCall = 64;
  std::vector<double> times;
  std::size_t chosen = 0;
  for (allocator::ChooseRequest& request : requests) {
    if (size != kOwnSize) request.size = size;
    if (times.size() % kChoicesPerCall == 0) run().calls.push_back(run().empty.microseconds());
    const auto start = Clock::now();
    chosen += choose(topology, request).ids.size();
    times.push_back(Micros(Clock::now() - start).count());
  }
  if (chosen == 0) fmt::print("nothing chosen\n");
  run().rows.push_back({name, size, times.size(), at(times, 0.5), at(times, 0.99)});
}

std::vector<std::vector<int>> halves_of_16() {
  std::vector<std::vector<int>> halves;
  for (unsigned set = 0; set < 65536; ++set) {
    if (std::popcount(set) != 8) continue;
    std::vector<int> ids;
    for (int i = 0; i < 16; ++i) {
      if ((set >> static_cast<unsigned>(i) & 1U) != 0) ids.push_back(i);
    }
    halves.push_back(std::move(ids));
  }
  return halves;
}

// The same questions with what the agent knows beside them.
struct Hinted {
  std::vector<allocator::ChooseRequest> must;        // one core that must be in
  std::vector<allocator::ChooseRequest> free_efas;   // half of the EFAs are free
  std::vector<allocator::ChooseRequest> given_efas;  // two EFAs were given already, of whatever devices
};

Hinted hinted(const std::vector<allocator::ChooseRequest>& plain, int efas, std::mt19937& random) {
  Hinted all{plain, plain, plain};
  for (allocator::ChooseRequest& request : all.must) {
    request.must_include = {request.available[random() % request.available.size()]};
  }
  for (allocator::ChooseRequest& request : all.free_efas) {
    for (int efa = 0; efa < efas; ++efa) {
      if (random() % 2 == 0) request.free_efas.push_back(efa);
    }
  }
  for (allocator::ChooseRequest& request : all.given_efas) {
    const auto first = static_cast<int>(random() % static_cast<unsigned>(efas));
    request.prefer_efas = {first, (first + 1) % efas};
  }
  return all;
}

void measure_hinted(const std::string& name, const allocator::NodeTopology& topology,
                    const std::vector<allocator::ChooseRequest>& plain, const std::vector<int>& sizes,
                    const Chooser& choose) {
  std::mt19937 random(8);
  Hinted all = hinted(plain, static_cast<int>(topology.efas.size()), random);
  for (const int size : sizes) measure(name + ", one must", topology, all.must, size, choose);
  for (const int size : sizes) measure(name + ", free EFAs", topology, all.free_efas, size, choose);
  for (const int size : sizes) measure(name + ", given EFAs", topology, all.given_efas, size, choose);
}

void real_node(const char* type) {
  const allocator::NodeTopology topology = topology_of(type);
  const auto halves = halves_of_16();
  std::vector<allocator::ChooseRequest> devices, whole, efas, mixed;
  std::mt19937 random(5);
  const int per = topology.cores_per_device;
  for (const auto& half : halves) {
    devices.push_back(ask(half, 0));
    whole.emplace_back();
    for (const int device : half) {
      for (int core = 0; core < per; ++core) whole.back().available.push_back(device * per + core);
    }
    efas.push_back(ask(range_of(0, static_cast<int>(topology.efas.size())), 0));
    efas.back().free_devices = half;
    auto cores = range_of(0, 16 * per);
    std::shuffle(cores.begin(), cores.end(), random);
    cores.resize(cores.size() / 2);
    std::sort(cores.begin(), cores.end());
    mixed.push_back(ask(cores, 0));
  }
  const std::string name = type;
  for (const int size : {1, 2, 4, 7}) measure(name + " devices", topology, devices, size, allocator::choose_devices);
  for (const int size : {1, 2, 4, 8, 11})
    measure(name + " cores, whole devices", topology, whole, size, allocator::choose_cores);
  for (const int size : {1, 2, 4, 8}) measure(name + " cores, random", topology, mixed, size, allocator::choose_cores);
  for (const int size : {1, 2, 4, 7}) measure(name + " EFAs asked first", topology, efas, size, allocator::choose_efas);
  measure_hinted(name + " devices", topology, devices, {2, 4, 6, 7}, allocator::choose_devices);
  measure_hinted(name + " cores, whole", topology, whole, {4, 8, 11}, allocator::choose_cores);
  measure_hinted(name + " cores, random", topology, mixed, {4, 8}, allocator::choose_cores);
  for (auto& request : efas) request.likely_sizes = {2, 4, 1, 8};
  for (const int size : {1, 4})
    measure(name + " EFAs first, 4 likely sizes", topology, efas, size, allocator::choose_efas);
}

// Any share of the node free and any size, not only half: the widest search is that of a node almost empty.
void any_share(const char* type) {
  const allocator::NodeTopology topology = topology_of(type);
  std::mt19937 random(9);
  std::vector<allocator::ChooseRequest> devices, cores;
  const int per = topology.cores_per_device;
  while (devices.size() < 10'000) {
    const auto share = random() % 101;
    devices.emplace_back();
    cores.emplace_back();
    for (int device = 0; device < 16; ++device) {
      const bool whole = random() % 100 < share;
      if (whole) devices.back().available.push_back(device);
      for (int core = 0; core < per; ++core) {
        if (whole || random() % 4 == 0) cores.back().available.push_back(device * per + core);
      }
    }
    if (devices.back().available.size() > 1 && cores.back().available.size() > 1) continue;
    devices.pop_back();
    cores.pop_back();
  }
  const auto efas = static_cast<int>(topology.efas.size());
  const std::string name = std::string(type) + " any share free,";
  const auto measure_all = [&](const std::string& what, std::vector<allocator::ChooseRequest>& plain,
                               const Chooser& choose) {
    for (allocator::ChooseRequest& request : plain)
      request.size = 1 + static_cast<int>(random() % (request.available.size() - 1));
    Hinted with = hinted(plain, efas, random);
    measure(name + what, topology, plain, kOwnSize, choose);
    measure(name + what + ", one must", topology, with.must, kOwnSize, choose);
    measure(name + what + ", free EFAs", topology, with.free_efas, kOwnSize, choose);
    measure(name + what + ", given EFAs", topology, with.given_efas, kOwnSize, choose);
  };
  measure_all(" devices", devices, allocator::choose_devices);
  measure_all(" cores", cores, allocator::choose_cores);
}

void grown_node(int rows) {
  allocator::NodeTopology topology;
  topology.groups_of_torus = true;
  topology.cores_per_device = 8;
  const int count = rows * 4;
  for (int i = 0; i < count; ++i) {
    topology.devices.push_back(
        {i,
         i / 8,
         i / 2,
         {(i + 4) % count, (i + count - 4) % count, i / 4 * 4 + (i + 1) % 4, i / 4 * 4 + (i + 3) % 4},
         {}});
  }
  std::mt19937 random(6);
  std::vector<allocator::ChooseRequest> requests;
  for (int i = 0; i < 500; ++i) {
    auto ids = range_of(0, count);
    std::shuffle(ids.begin(), ids.end(), random);
    ids.resize(ids.size() * 3 / 4);
    std::sort(ids.begin(), ids.end());
    requests.push_back(ask(ids, 0));
  }
  const int third = std::max(2, count / 3);
  measure(fmt::format("torus of {} devices, 3/4 free", count), topology, requests, third, allocator::choose_devices);
}

}  // namespace
}  // namespace neuron::test

int main() {
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge"}) neuron::test::real_node(type);
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge"}) neuron::test::any_share(type);
  for (const int rows : {1, 4, 8, 16}) neuron::test::grown_node(rows);
  neuron::test::print_rows();
  return 0;
}
