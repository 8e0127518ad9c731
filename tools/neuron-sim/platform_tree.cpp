#include <array>
#include <string>

#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

void write_dmi(TreeWriter& tree, const MachinePlan& machine) {
  const std::string dmi = "sys/devices/virtual/dmi/id/";
  tree.file(dmi + "product_name", machine.options.instance_type + "\n");
  tree.file(dmi + "board_asset_tag", machine.options.instance_id + "\n");
  tree.file(dmi + "sys_vendor", "Amazon EC2\n");
  tree.file(dmi + "board_vendor", "Amazon EC2\n");
  tree.link("sys/class/dmi/id", "sys/devices/virtual/dmi/id");
}

void write_module(TreeWriter& tree, const std::string& name, const std::string& version) {
  const std::string module = "sys/module/" + name + "/";
  tree.file(module + "initstate", "live\n");
  if (!version.empty()) tree.file(module + "version", version + "\n");
}

struct Parameter {
  const char* name;
  const char* value;  // by default
  int first_minor = 0;
  int last_minor = 999;
};

// docs/reference/driver.md#paths
constexpr std::array<Parameter, 21> kParameters = {{
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
}};

void write_parameters(TreeWriter& tree, const DriverGeneration& driver) {
  for (const auto& [name, value, first_minor, last_minor] : kParameters) {
    if (driver.minor < first_minor || driver.minor > last_minor) continue;
    tree.file("sys/module/neuron/parameters/" + std::string(name), value + std::string("\n"), 0660);
  }
}

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
    write_parameters(tree, machine.driver);
    devices += "239 neuron\n";
  }
  tree.file("proc/devices", devices + "\nBlock devices:\n259 blkext\n");
}

}  // namespace

void write_platform(TreeWriter& tree, const MachinePlan& machine) {
  write_dmi(tree, machine);
  write_modules(tree, machine);
  tree.directory("dev");
  tree.file("dev/kmsg", "", 0644);  // a kernel log without a line (docs/fixtures.md#the-kernel-log)
  // What the EFA installer reserves: 110 pages per CPU and one.
  constexpr int kPagesPerCpu = 110;
  const int pages = machine.rdma.empty() ? 0 : kPagesPerCpu * cpu_count(*machine.type) + 1;
  tree.file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", std::to_string(pages) + "\n", 0644);
  if (machine.options.lnc) {
    tree.file("opt/aws/neuron/logical_nc_config",
              "NEURON_LOGICAL_NC_CONFIG=" + std::to_string(*machine.options.lnc) + "\n", 0644);
  }
}

}  // namespace neuron::sim
