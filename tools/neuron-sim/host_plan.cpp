#include "tools/neuron-sim/host_plan.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "neuron_version.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

struct PlatformName {
  std::string_view instance_type;
  Platform platform;
  int first_minor;
};

// docs/reference/driver.md#platform-classes
constexpr std::array<PlatformName, 16> kPlatformNames = {{
    {"trn2p.48xlarge", Platform::ultraserver, 0},
    {"trn2eu.48xlarge", Platform::ultraserver, 23},
    {"trn2u.48xlarge", Platform::ultraserver, 0},
    {"trn2u-ac.24xlarge", Platform::ultraserver, 25},
    {"trn3p.48xlarge", Platform::ultraserver, 26},
    {"trn2es.48xlarge", Platform::pds, 25},
    {"trn3s.48xlarge", Platform::pds, 25},
    {"trn3-dev0.48xlarge", Platform::pds, 25},
    {"trn3.48xlarge", Platform::pds, 30},
    {"trn3-dev1.48xlarge", Platform::pds, 30},
    {"trn3s-es.48xlarge", Platform::pds, 30},
    {"trn3sn.48xlarge", Platform::pds, 30},
    {"trn3sn-es.48xlarge", Platform::pds, 30},
    {"trn2en.24xlarge", Platform::max, 30},
    {"trn3e.24xlarge", Platform::max, 30},
    {"trn3e-dev0.24xlarge", Platform::max, 30},
}};

Result<int> minor_of(std::string_view version) {
  const auto parts = split(version, '.');
  const bool shaped = parts.size() >= 3 && parts[0] == "2" && std::ranges::none_of(parts, &std::string_view::empty);
  const auto minor = shaped ? parse_int(parts[1], 0, 999) : std::nullopt;
  if (minor) return *minor;
  if (shaped && parts[1] == "x") return 26;  // Bottlerocket
  return fail(ErrorCode::invalid_argument, "driver version \"" + printable(version) +
                                               "\" is not like 2.30.2.0 (a module version of aws-neuronx-dkms)");
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

Result<Part> parse_part(std::string_view text) {
  if (text == "efa") return Part::efa;
  if (text == "uverbs") return Part::uverbs;
  if (text == "ioctl") return Part::ioctl;
  if (text == "driver") return Part::driver;
  return fail(ErrorCode::invalid_argument,
              "cannot leave out \"" + printable(text) + "\": the parts are efa, uverbs, ioctl, driver");
}

Result<UltraServerPlan> parse_ultraserver(std::string_view text) {
  using State = UltraServerPlan::State;
  if (text == "busy") return UltraServerPlan{State::busy, 0, -1};
  if (text == "alone") return UltraServerPlan{State::alone, 0, -1};
  const auto parts = split(text, ':');
  const int nodes = parts.empty() ? 0 : parse_int(parts[0], 2, 4).value_or(0);
  const auto node = parts.size() == 2 ? parse_int(parts[1], 0, nodes - 1) : std::optional(0);
  if ((nodes != 2 && nodes != 4) || !node || parts.size() > 2) {
    return fail(ErrorCode::invalid_argument,
                "UltraServer \"" + printable(text) + "\" is not busy, alone, 2 or 4, or like 4:3 for node 3 of 4");
  }
  return UltraServerPlan{State::linked, nodes, *node};
}

Result<DriverGeneration> generation_of(std::string_view version) {
  TRY_ASSIGN(const int minor, minor_of(version));
  if (minor < 21) {
    return fail(ErrorCode::invalid_argument,
                "driver " + std::string(version) + " is not simulated: the first is 2.21.37");
  }
  return DriverGeneration{minor};
}

Result<void> check_drives(const DriverGeneration& generation, model::Family family) {
  if (family == model::Family::inferentia && generation.minor > 24) {
    return fail(ErrorCode::invalid_argument,
                "inf1 needs driver 2.24.*, the last with Inferentia 1 (use --driver 2.24.7.0)");
  }
  if (family == model::Family::trainium3 && generation.minor < 25) {
    return fail(ErrorCode::invalid_argument, "trn3 needs driver 2.25.4 or later (use --driver 2.26.5.0)");
  }
  return {};
}

Platform platform_of(std::string_view instance_type, const DriverGeneration& generation) {
  for (const auto& entry : kPlatformNames) {
    if (entry.instance_type == instance_type && generation.minor >= entry.first_minor) return entry.platform;
  }
  return Platform::standard;
}

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
