// What one choice costs: every half of a node's devices free, or random halves of its cores; then larger nodes.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>
#include <random>

#include "test/unit/core/make_host.h"

namespace neuron::core::test {
namespace {

using Clock = std::chrono::steady_clock;
using Micros = std::chrono::duration<double, std::micro>;
using Chooser = std::function<Choice(const NodeTopology&, const ChooseRequest&)>;

void print_row(const std::string& name, int size, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  fmt::print("{:<34}{:>6}{:>9}{:>10.1f}{:>10.1f}{:>10.1f}\n", name, size, times.size(), at(0.5), at(0.99),
             times.back());
}

void measure(const std::string& name, const NodeTopology& topology, std::vector<ChooseRequest>& requests, int size,
             const Chooser& choose) {
  std::vector<double> times;
  std::size_t chosen = 0;
  for (ChooseRequest& request : requests) {
    request.size = size;
    const auto start = Clock::now();
    chosen += choose(topology, request).ids.size();
    times.push_back(Micros(Clock::now() - start).count());
  }
  if (chosen == 0) fmt::print("nothing chosen\n");
  print_row(name, size, std::move(times));
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

void real_node(const char* type) {
  const NodeTopology topology = topology_of(type);
  const auto halves = halves_of_16();
  std::vector<ChooseRequest> devices, whole, efas, mixed;
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
  for (const int size : {1, 2, 4, 7}) measure(name + " devices", topology, devices, size, choose_devices);
  for (const int size : {1, 2, 4, 8, 11}) measure(name + " cores, whole devices", topology, whole, size, choose_cores);
  for (const int size : {1, 2, 4, 8}) measure(name + " cores, random", topology, mixed, size, choose_cores);
  for (const int size : {1, 2, 4, 7}) measure(name + " EFAs asked first", topology, efas, size, choose_efas);
}

void grown_node(int rows) {
  NodeTopology topology;
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
  std::vector<ChooseRequest> requests;
  for (int i = 0; i < 500; ++i) {
    auto ids = range_of(0, count);
    std::shuffle(ids.begin(), ids.end(), random);
    ids.resize(ids.size() * 3 / 4);
    std::sort(ids.begin(), ids.end());
    requests.push_back(ask(ids, 0));
  }
  const int third = std::max(2, count / 3);
  measure(fmt::format("torus of {} devices, 3/4 free", count), topology, requests, third, choose_devices);
}

}  // namespace
}  // namespace neuron::core::test

int main() {
  fmt::print("{:<34}{:>6}{:>9}{:>10}{:>10}{:>10}\n", "microseconds", "size", "choices", "median", "p99", "most");
  for (const char* type : {"trn1.32xlarge", "trn2.48xlarge"}) neuron::core::test::real_node(type);
  for (const int rows : {1, 4, 8, 16}) neuron::core::test::grown_node(rows);
  return 0;
}
