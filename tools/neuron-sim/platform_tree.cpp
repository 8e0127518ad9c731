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
    const std::string parameters = "sys/module/neuron/parameters/";
    tree.file(parameters + "nmetric_log_posts", "1\n", 0644);
    tree.file(parameters + "nmetric_metric_post_delay", "150000\n", 0644);
    tree.file(parameters + "no_reset", "0\n", 0644);
    tree.file(parameters + "force_userver", "0\n", 0644);
    tree.file(parameters + "force_die_flip", "0\n", 0644);
    tree.file(parameters + "dev_nc_map", "255\n", 0644);
    devices += "239 neuron\n";
  }
  tree.file("proc/devices", devices + "\nBlock devices:\n259 blkext\n");
}

}  // namespace

void write_platform(TreeWriter& tree, const MachinePlan& machine) {
  write_dmi(tree, machine);
  write_modules(tree, machine);
  tree.directory("dev");
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
