#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "agent/base/fd.h"
#include "neuron_version.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/machine_plan.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

// Equal for two plans exactly when this version of neuron-sim writes the same host for both.
std::string plan_line(const MachinePlan& machine) {
  const HostPlan& options = machine.options;
  nlohmann::json line{{"version", kVersion},
                      {"type", options.instance_type},
                      {"driver", options.driver_version},
                      {"lnc", options.lnc.value_or(0)},
                      {"missing", options.missing},
                      {"without", nlohmann::json::array()},
                      {"instance_id", options.instance_id},
                      {"naming", options.naming == RdmaNaming::by_path ? "path" : "kernel"},
                      {"files", options.files}};
  if (const auto& server = options.ultraserver) {
    line["ultraserver"] = {static_cast<int>(server->state), server->nodes, server->node};
  }
  std::sort(line["missing"].begin(), line["missing"].end());
  for (const Part part : options.without) line["without"].push_back(static_cast<int>(part));
  return line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string summary(const MachinePlan& machine) {
  const auto efas = std::ranges::count_if(machine.rdma, &RdmaFunction::is_efa);
  std::string text = machine.options.instance_type;
  if (machine.has_driver()) text += ", driver " + machine.options.driver_version;
  if (machine.type->family && !machine.has_driver()) text += ", no Neuron driver";
  return text + fmt::format(": {} device{}, {} EFA interface{}", machine.neurons.size(),
                            machine.neurons.size() == 1 ? "" : "s", efas, efas == 1 ? "" : "s");
}

std::string note(const MachinePlan& machine) {
  std::string text =
      "Synthetic: no real machine looked exactly like this. Written by neuron-sim node.\n\n" + summary(machine) +
      "\n\n" +
      "Counts, file names, modes and formats follow the driver version named above; addresses, NUMA nodes\n"
      "and neighbours follow the public tables of the instance type. Serial numbers, MAC addresses,\n"
      "instance id and all PCI addresses that are unpublished are made up. Counters are those of an idle driver.\n"
      "Device nodes behave like /dev/null; their numbers are not those in the dev files.\n";
  if (!machine.driver.known_layout()) {
    text += "Where this driver keeps its files is not publicly known: the folders of the devices are invented.\n";
  }
  return text;
}

}  // namespace

Result<void> write_host(const HostPlan& plan, const std::string& dir) {
  TRY_ASSIGN(const MachinePlan machine, plan_machine(plan));
  TRY(prepare_directory(dir));
  const std::string record = dir + "/" + kPlanFile;
  if (is_folder(dir + "/" + kOwnFolder) && ::unlink(record.c_str()) != 0 && errno != ENOENT) {
    return fail(error_from_errno(errno, record));
  }
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
  return write_by_rename(record, plan_line(machine));
}

bool is_host_of(const HostPlan& plan, const std::string& dir) {
  const auto machine = plan_machine(plan);
  if (!machine || !require_simulated(dir) || !is_folder(dir + "/" + kOwnFolder)) return false;
  const std::string line = plan_line(*machine);
  if (read_text_file(dir + "/" + kPlanFile, line.size()) != line) return false;
  return ::geteuid() != 0 || !has_plain_files_for_devices(dir);
}

bool has_plain_files_for_devices(const std::string& dir) {
  for (const std::string folder : {"/dev", "/dev/infiniband"}) {
    for (const std::string& name : names_in(dir + folder)) {
      const bool is_device = name.starts_with("neuron") || name.starts_with("uverbs");
      if (is_device && type_of(dir + folder + "/" + name) == std::filesystem::file_type::regular) return true;
    }
  }
  return false;
}

Result<std::string> describe(const HostPlan& plan) {
  TRY_ASSIGN(const MachinePlan machine, plan_machine(plan));
  return summary(machine);
}

}  // namespace neuron::sim
