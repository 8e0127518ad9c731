#include "tools/neuron-sim/host_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "agent/base/fd.h"
#include "neuron_version.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/machine_plan.h"
#include "tools/neuron-sim/tree_writer.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

// DIR/.neuron-sim/plan records the plan that a host was written from, so that the same host is not written again. The
// file exists exactly while the host is complete: it is removed before the first change and written after the last.
constexpr const char* kOwnFolder = ".neuron-sim";
constexpr const char* kName = "plan";
constexpr const char* kNewName = "plan.new";

// Not through a link: only files below `dir` are changed.
Fd open_folder(const std::string& dir) {
  return Fd(::open((dir + "/" + kOwnFolder).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::string name_in(const std::string& dir) {
  return dir + "/" + kOwnFolder + "/" + kName;
}

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

// Whether `dir` is complete and was written from a plan with this line. Also false without a directory, and for an
// unreadable file.
bool is_written_from(const std::string& dir, const std::string& line) {
  const Fd folder = open_folder(dir);
  const Fd file(folder.valid() ? ::openat(folder.get(), kName, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1);
  if (!file.valid()) return false;
  std::string text(line.size() + 1, '\0');  // one more, to see that there is no more
  const ssize_t count = ::read(file.get(), text.data(), text.size());
  if (count < 0) return false;
  text.resize(static_cast<std::size_t>(count));
  return text == line;
}

// No error when there is no such file, or no directory.
Result<void> forget_plan(const std::string& dir) {
  const Fd folder = open_folder(dir);
  if (!folder.valid() || ::unlinkat(folder.get(), kName, 0) == 0 || errno == ENOENT) return {};
  return fail(error_from_errno(errno, name_in(dir)));
}

// The file appears complete or not at all.
Result<void> record_plan(const std::string& dir, const std::string& line) {
  const Fd folder = open_folder(dir);
  if (!folder.valid()) return fail(error_from_errno(errno, dir + "/" + kOwnFolder));
  const Fd file(::openat(folder.get(), kNewName, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file.valid()) return fail(error_from_errno(errno, name_in(dir)));
  TRY(write_all(file.get(), line, name_in(dir)));
  if (::renameat(folder.get(), kNewName, folder.get(), kName) != 0) {
    return fail(error_from_errno(errno, name_in(dir)));
  }
  return {};
}

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
