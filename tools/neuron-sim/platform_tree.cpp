#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "agent/base/parse.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

void write_dmi(TreeWriter& tree, const MachinePlan& machine) {
  const std::string dmi = "sys/devices/virtual/dmi/id";
  tree.lines(dmi, {{"/product_name", machine.options.instance_type},
                   {"/board_asset_tag", machine.options.instance_id},
                   {"/sys_vendor", "Amazon EC2"},
                   {"/board_vendor", "Amazon EC2"}});
  tree.link("sys/class/dmi/id", dmi);
}

void write_module(TreeWriter& tree, const std::string& name, const std::string& version) {
  tree.lines("sys/module/" + name, {{"/initstate", "live"}, {"/version", version, 0444, !version.empty()}});
}

struct Parameter {
  const char* name;
  const char* value;  // by default
  int first_minor = 0;
  int last_minor = 999;
};

// docs/reference/driver.md#paths
constexpr Parameter kParameters[] = {
    {"mempool_min_alloc_size", "4096"},
    {"mempool_host_memory_size", "33554432"},
    {"mempool_small_pool_size", "1073741824"},
    {"mempool_small_alloc_max", "524288"},
    {"nmetric_metric_post_delay", "150000"},
    {"nmetric_log_posts", "1"},
    {"dup_helper_enable", "1"},
    {"wc_enable", "1"},
    {"no_reset", "0"},
    {"nc_per_dev_param", "1"},
    {"dev_nc_map", "1"},
    {"force_die_flip", "0"},
    {"pod_ctl", "0", 0, 21},
    {"use_rr", "0", 0, 22},
    {"userver_ctl", "0", 22},
    {"userver_etimeout", "600", 22},
    {"force_userver", "0", 23},
    {"zerocopy_trn1_override", "0", 25},
    {"userver_pds_node_cnt", "2", 25},
    {"userver_pds_server_id", "1", 25},
    {"dma_teardown_on_exit", "1", 26},
};

void write_modules(TreeWriter& tree, const MachinePlan& machine) {
  std::string devices = "Character devices:\n  1 mem\n  5 /dev/tty\n 10 misc\n";
  if (machine.has_uverbs()) {
    write_module(tree, "ib_uverbs", "");
    devices += "231 infiniband_verbs\n";
  }
  if (!machine.rdma.empty()) {
    write_module(tree, "ib_core", "");
    write_module(tree, "efa", "3.1.0");
  }
  if (machine.has_driver()) {
    write_module(tree, "neuron", machine.options.driver_version);
    for (const auto& [name, value, first_minor, last_minor] : kParameters) {
      const bool exists = machine.driver.minor >= first_minor && machine.driver.minor <= last_minor;
      tree.lines("sys/module/neuron/parameters/", {{name, value, 0660, exists}});
    }
    devices += "239 neuron\n";
  }
  tree.file("proc/devices", devices + "\nBlock devices:\n259 blkext\n");
}

constexpr int kMaxCpus = 1024;
constexpr int kGibPerCpuWhenUnknown = 4;
constexpr std::uint64_t kKibPerGib = std::uint64_t{1} << 20U;

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
  const auto on_node = [&](int other) { return std::ranges::binary_search(node_cpus, other); };
  if (half > 0 && count % 2 == 0 && on_node(first) && on_node(first + half)) return {first, {first, first + half}};
  return {cpu, {cpu}};
}

void write_cpus_of(TreeWriter& tree, const core::InstanceType& type, int package, const std::vector<int>& node_cpus,
                   std::string& cpuinfo) {
  const int count = cpu_count(type);
  const std::string package_mask = format_cpumask(node_cpus, count);
  const std::string package_list = format_int_list(node_cpus);
  for (const int cpu : node_cpus) {
    const Core core = core_of(cpu, count, node_cpus);
    const std::string core_mask = format_cpumask(core.threads, count);
    tree.lines(fmt::format("sys/devices/system/cpu/cpu{}/topology/", cpu),
               {{"core_id", std::to_string(core.id)},
                {"physical_package_id", std::to_string(package)},
                {"thread_siblings", core_mask},
                {"core_cpus", core_mask},
                {"thread_siblings_list", format_int_list(core.threads)},
                {"core_siblings", package_mask},
                {"package_cpus", package_mask},
                {"core_siblings_list", package_list}});
    cpuinfo += fmt::format(
        "processor\t: {}\nvendor_id\t: GenuineIntel\nmodel name\t: Simulated CPU\nphysical id\t: {}\ncore id\t\t: "
        "{}\n\n",
        cpu, package, core.id);
  }
}

void write_node(TreeWriter& tree, const core::InstanceType& type, const core::NumaFacts& numa,
                const std::vector<int>& cpus) {
  const int id = numa.index;
  const std::uint64_t kib = memory_kib(type) / type.numa.size();
  std::string distances;
  for (const auto& other : type.numa)
    distances += (distances.empty() ? "" : " ") + std::string(other.index == id ? "10" : "21");
  tree.lines(
      fmt::format("sys/devices/system/node/node{}/", id),
      {{"cpumap", format_cpumask(cpus, cpu_count(type))},
       {"cpulist", format_int_list(cpus)},
       {"meminfo", fmt::format("Node {0} MemTotal:       {1} kB\nNode {0} MemFree:        {2} kB", id, kib, kib / 2)},
       {"distance", distances}});
}

// An idle machine an hour after boot: user nice system idle iowait irq softirq steal guest guest_nice, in clock ticks.
void write_use(TreeWriter& tree, std::uint64_t kib, int count) {
  constexpr std::uint64_t kIdleTicks = std::uint64_t{3600} * 100;
  const auto cpu = [](const std::string& name, std::uint64_t idle) {
    return fmt::format("{} 0 0 0 {} 0 0 0 0 0 0\n", name, idle);
  };
  std::string stat = cpu("cpu ", kIdleTicks * static_cast<std::uint64_t>(count));
  for (int i = 0; i < count; ++i) stat += cpu("cpu" + std::to_string(i), kIdleTicks);
  tree.file("proc/stat", stat);
  tree.line("proc/meminfo", fmt::format("MemTotal:       {0} kB\nMemFree:        {1} kB\nMemAvailable:   {1} kB\n"
                                        "HugePages_Total:       0\nHugepagesize:       2048 kB",
                                        kib, kib / 2));
}

}  // namespace

void write_platform(TreeWriter& tree, const MachinePlan& machine) {
  write_dmi(tree, machine);
  write_modules(tree, machine);
  tree.directory("dev");
  tree.file("dev/kmsg", "", 0644);  // a kernel log without a line (docs/fixtures.md#the-kernel-log)
  // The EFA installer reserves 110 pages per CPU and one.
  constexpr int kPagesPerCpu = 110;
  const int pages = machine.rdma.empty() ? 0 : kPagesPerCpu * cpu_count(*machine.type) + 1;
  tree.line("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", std::to_string(pages), 0644);
  if (const auto lnc = machine.options.lnc) {
    tree.line("opt/aws/neuron/logical_nc_config", fmt::format("NEURON_LOGICAL_NC_CONFIG={}", *lnc), 0644);
  }
}

std::string format_cpumask(const std::vector<int>& cpus, int width) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>((std::max(width, 1) + 31) / 32));
  for (const int cpu : cpus) {
    const auto word = static_cast<std::size_t>(cpu / 32);
    if (word < words.size()) words[word] |= 1U << static_cast<unsigned>(cpu % 32);
  }
  std::ranges::reverse(words);
  return fmt::format("{:08x}", fmt::join(words, ","));
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
    tree.line(std::string("sys/devices/system/cpu/") + name, count == 1 ? "0" : fmt::format("0-{}", count - 1));
  }
  for (const char* name : {"online", "possible", "has_cpu", "has_memory"}) {
    tree.line(std::string("sys/devices/system/node/") + name, format_int_list(nodes));
  }
  tree.file("proc/cpuinfo", cpuinfo);
  write_use(tree, memory_kib(type), count);
}

}  // namespace neuron::sim
