#include "tools/neuron-sim/host_writer.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/machine_plan.h"
#include "tools/neuron-sim/tree_writer.h"
#include "tools/neuron-sim/trees.h"
#include "tools/neuron-sim/written_plan.h"

namespace neuron::sim {
namespace {

std::string plural(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string summary(const MachinePlan& machine) {
  std::size_t efas = 0;
  for (const auto& rdma : machine.rdma) efas += rdma.is_efa ? 1 : 0;
  std::string text = machine.options.instance_type;
  if (machine.has_driver()) text += ", driver " + machine.options.driver_version;
  if (machine.type->family && !machine.has_driver()) text += ", no Neuron driver";
  return text + ": " + plural(machine.neurons.size(), "device") + ", " + plural(efas, "EFA interface");
}

std::string note(const MachinePlan& machine) {
  std::string text =
      "Synthetic: no real machine looked exactly like this. Written by neuron-sim node.\n\n" + summary(machine) +
      "\n\n" +
      "Counts, file names, modes and formats follow the driver version named above; addresses, NUMA nodes\n"
      "and neighbours follow the public tables of the instance type. Serial numbers, MAC addresses,\n"
      "instance id and all PCI addresses that are unpublished are made up. Counters are those of an idle driver.\n"
      "Device nodes behave like /dev/null; their numbers are not those in the dev files.\n";
  if (!machine.driver.known_layout) {
    text += "Where this driver keeps its files is not publicly known: the folders of the devices are invented.\n";
  }
  return text;
}

}  // namespace

Result<void> write_host(const HostPlan& plan, const std::string& dir) {
  TRY_ASSIGN(const MachinePlan machine, plan_machine(plan));
  TRY(prepare_directory(dir));
  TRY(forget_plan(dir));
  TRY_ASSIGN(TreeWriter tree, TreeWriter::open(dir));
  tree.file(kMarkerFile, summary(machine) + "\n", 0644);  // first: an interrupted write can be repeated
  tree.file("NOTE", note(machine), 0644);
  write_processors(tree, machine);
  write_platform(tree, machine);
  write_pci(tree, machine);
  write_neuron(tree, machine);
  write_rdma(tree, machine);
  for (const auto& [path, text] : machine.options.files) tree.file(path, text, 0644);
  TRY(tree.finish());
  return record_plan(dir, plan_line(machine));
}

bool is_host_of(const HostPlan& plan, const std::string& dir) {
  const auto machine = plan_machine(plan);
  if (!machine || !require_simulated(dir) || !is_written_from(dir, plan_line(*machine))) return false;
  return ::geteuid() != 0 || !has_plain_files_for_devices(dir);
}

bool has_plain_files_for_devices(const std::string& dir) {
  namespace fs = std::filesystem;
  for (const char* folder : {"/dev", "/dev/infiniband"}) {
    std::error_code error;
    for (fs::directory_iterator it(dir + folder, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      const bool is_device = name.starts_with("neuron") || name.starts_with("uverbs");
      if (is_device && it->symlink_status(error).type() == fs::file_type::regular) return true;
    }
  }
  return false;
}

Result<std::string> describe(const HostPlan& plan) {
  TRY_ASSIGN(const MachinePlan machine, plan_machine(plan));
  return summary(machine);
}

}  // namespace neuron::sim
