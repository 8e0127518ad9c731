#include <algorithm>
#include <cstdio>
#include <numeric>

#include "agent/base/parse.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

constexpr int kMaxCpus = 1024;
constexpr int kGibPerCpuWhenUnknown = 4;
constexpr std::uint64_t kKibPerGib = std::uint64_t{1} << 20U;

std::string line(const std::string& text) {
  return text + "\n";
}

std::string range(int count) {
  return count == 1 ? "0\n" : "0-" + std::to_string(count - 1) + "\n";
}

std::uint64_t memory_kib(const core::InstanceType& type) {
  const int gib = type.host_memory_gib > 0 ? type.host_memory_gib : cpu_count(type) * kGibPerCpuWhenUnknown;
  return static_cast<std::uint64_t>(gib) * kKibPerGib;
}

// Hyper-threads are numbered as Linux does on Nitro: CPU c and c + half of all CPUs, where both are of the same node.
struct Core {
  int id = 0;
  std::vector<int> threads;
};

Core core_of(int cpu, int count, const std::vector<int>& node_cpus) {
  const int half = count / 2;
  const int first = half > 0 ? cpu % half : cpu;
  const auto on_node = [&](int other) { return std::binary_search(node_cpus.begin(), node_cpus.end(), other); };
  if (half > 0 && count % 2 == 0 && on_node(first) && on_node(first + half)) return {first, {first, first + half}};
  return {cpu, {cpu}};
}

void write_cpus_of(TreeWriter& tree, const core::InstanceType& type, int package, const std::vector<int>& node_cpus,
                   std::string& cpuinfo) {
  const int count = cpu_count(type);
  const std::string package_mask = line(format_cpumask(node_cpus, count));
  const std::string package_list = line(format_int_list(node_cpus));
  for (const int cpu : node_cpus) {
    const Core core = core_of(cpu, count, node_cpus);
    const std::string core_mask = line(format_cpumask(core.threads, count));
    const std::string topology = "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    tree.file(topology + "core_id", line(std::to_string(core.id)));
    tree.file(topology + "physical_package_id", line(std::to_string(package)));
    tree.file(topology + "thread_siblings", core_mask);
    tree.file(topology + "core_cpus", core_mask);
    tree.file(topology + "thread_siblings_list", line(format_int_list(core.threads)));
    tree.file(topology + "core_siblings", package_mask);
    tree.file(topology + "package_cpus", package_mask);
    tree.file(topology + "core_siblings_list", package_list);
    cpuinfo += "processor\t: " + std::to_string(cpu) + "\nvendor_id\t: GenuineIntel\nmodel name\t: Simulated CPU\n" +
               "physical id\t: " + std::to_string(package) + "\ncore id\t\t: " + std::to_string(core.id) + "\n\n";
  }
}

void write_node(TreeWriter& tree, const core::InstanceType& type, const core::NumaFacts& numa,
                const std::vector<int>& cpus) {
  const std::string id = std::to_string(numa.index);
  const std::string node = "sys/devices/system/node/node" + id + "/";
  const std::uint64_t kib = memory_kib(type) / type.numa.size();
  tree.file(node + "cpumap", line(format_cpumask(cpus, cpu_count(type))));
  tree.file(node + "cpulist", line(format_int_list(cpus)));
  tree.file(node + "meminfo", "Node " + id + " MemTotal:       " + std::to_string(kib) + " kB\nNode " + id +
                                  " MemFree:        " + std::to_string(kib / 2) + " kB\n");
  std::string distances;
  for (const auto& other : type.numa)
    distances += (distances.empty() ? "" : " ") + std::string(other.index == numa.index ? "10" : "21");
  tree.file(node + "distance", line(distances));
}

// An idle machine an hour after boot: user nice system idle iowait irq softirq steal guest guest_nice, in clock ticks.
void write_use(TreeWriter& tree, std::uint64_t kib, int count) {
  constexpr std::uint64_t kIdleTicks = std::uint64_t{3600} * 100;
  const auto cpu = [](const std::string& name, std::uint64_t idle) {
    return name + " 0 0 0 " + std::to_string(idle) + " 0 0 0 0 0 0\n";
  };
  std::string stat = cpu("cpu ", kIdleTicks * static_cast<std::uint64_t>(count));
  for (int i = 0; i < count; ++i) stat += cpu("cpu" + std::to_string(i), kIdleTicks);
  tree.file("proc/stat", stat);
  const auto memory = [](const char* name, std::uint64_t size) { return name + std::to_string(size) + " kB\n"; };
  tree.file("proc/meminfo", memory("MemTotal:       ", kib) + memory("MemFree:        ", kib / 2) +
                                memory("MemAvailable:   ", kib / 2) +
                                "HugePages_Total:       0\nHugepagesize:       2048 kB\n");
}

}  // namespace

std::string format_cpumask(const std::vector<int>& cpus, int width) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>((std::max(width, 1) + 31) / 32));
  for (const int cpu : cpus) {
    const auto word = static_cast<std::size_t>(cpu / 32);
    if (word < words.size()) words[word] |= 1U << static_cast<unsigned>(cpu % 32);
  }
  std::string text;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    char hex[10];
    std::snprintf(hex, sizeof hex, "%08x", *word);
    text += (text.empty() ? "" : ",") + std::string(hex);
  }
  return text;
}

int cpu_count(const core::InstanceType& type) {
  int last = std::max(type.vcpus, 1) - 1;
  for (const auto& numa : type.numa) {
    const auto cpus = parse_int_list(numa.cpu_list, kMaxCpus);
    if (cpus && !cpus->empty()) last = std::max(last, cpus->back());
  }
  return last + 1;
}

std::vector<int> cpus_of_node(const core::InstanceType& type, int numa_node) {
  for (const auto& numa : type.numa) {
    if (numa.index != numa_node) continue;
    if (auto cpus = parse_int_list(numa.cpu_list, kMaxCpus)) return *std::move(cpus);
  }
  std::vector<int> all(static_cast<std::size_t>(cpu_count(type)));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void write_processors(TreeWriter& tree, const MachinePlan& machine) {
  const auto& type = *machine.type;
  const int count = cpu_count(type);
  std::string cpuinfo;
  std::vector<int> nodes;
  for (const auto& numa : type.numa) {
    const auto cpus = cpus_of_node(type, numa.index);
    write_cpus_of(tree, type, numa.index, cpus, cpuinfo);
    write_node(tree, type, numa, cpus);
    nodes.push_back(numa.index);
  }
  for (const char* name : {"online", "possible", "present"}) {
    tree.file(std::string("sys/devices/system/cpu/") + name, range(count));
  }
  for (const char* name : {"online", "possible", "has_cpu", "has_memory"}) {
    tree.file(std::string("sys/devices/system/node/") + name, line(format_int_list(nodes)));
  }
  tree.file("proc/cpuinfo", cpuinfo);
  write_use(tree, memory_kib(type), count);
}

}  // namespace neuron::sim
