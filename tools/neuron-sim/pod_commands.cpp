#include "tools/neuron-sim/commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/host/fs_root.h"
#include "agent/host/machine_topology.h"
#include "agent/kube/api.h"
#include "agent/kube/api_client.h"
#include "agent/model/device.h"
#include "tools/neuron-sim/host_directory.h"

namespace neuron::sim {
namespace {

// The text of `neuron-sim node --list`: one line per instance type of the catalogue, in its order.
std::string type_table() {
  std::string text = "TYPE                 FAMILY       DEVICES  CORES  EFAS  NUMA  TOPOLOGY\n";
  for (const auto& type : core::all_instance_types()) {
    text += fmt::format("{:<20} {:<12} {:>7} {:>6} {:>5} {:>5}  {}\n", type.name,
                        type.family ? model::to_string(*type.family) : "-", type.device_count,
                        type.device_count * type.physical_cores_per_device / type.default_lnc, type.efa_count,
                        type.numa.size(), type.family ? core::to_string(type.shape) : "-");
  }
  return text;
}

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kPause{250};  // between two attempts
constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;

bool is_passing(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::deadline_exceeded;
}

// Reads the credential files for each attempt: they may have been rotated.
Result<std::optional<std::string>> ask_once(const kube::InClusterPlaces& places, const std::string& node,
                                            milliseconds deadline) {
  TRY_ASSIGN(const kube::ClusterAccess access, kube::in_cluster_access(places));
  return kube::node_label(access, node, kTypeLabel, {deadline, kMaxBytes});
}

std::string label_of(const std::string& node) {
  return std::string("the label ") + kTypeLabel + " of node " + printable(node);
}

// Writes while no load plays there. A failure leaves a new or empty directory as it was.
Result<void> write_alone(const HostPlan& plan, const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  Fd alone;
  if (require_simulated(directory)) {
    TRY_ASSIGN(alone, claim_host(directory));
  }
  const bool existed = fs::exists(directory, error);
  const bool is_empty = existed && fs::is_directory(directory, error) && fs::is_empty(directory, error);
  auto written = write_host(plan, directory);
  if (written || (existed && !is_empty)) return written;
  for (const auto& name : existed ? names_in(directory) : std::vector<std::string>()) {
    fs::remove_all(fs::path(directory) / name, error);
  }
  if (!existed) fs::remove_all(directory, error);
  return written;
}

enum class Choice { made, leave_as_it_is };

// Fills in the instance type from the node's label, or reports why it cannot.
Choice choose_type(NodeCommand& command, std::ostream& errors) {
  std::string& type = command.plan.instance_type;
  const LabelAnswer answer = ask_type_label(command.places, command.type_from_node, command.label_budget);
  if (answer.type && !answer.type->empty()) {
    type = *answer.type;
    return Choice::made;
  }
  if (type.empty()) type = kDefaultType;
  if (answer.why_unknown.empty()) return Choice::made;
  errors << "neuron-sim: " << label_of(command.type_from_node) << " cannot be read, so ";
  if (answer.may_work_later && is_whole_host(command.directory)) {
    errors << "what is in " << command.directory << " stays: " << answer.why_unknown << "\n";
    return Choice::leave_as_it_is;
  }
  errors << "it is " << printable(type) << ": " << answer.why_unknown << "\n";
  return Choice::made;
}

// Once the type is known.
Result<void> write_or_keep(const NodeCommand& command, std::ostream& out, std::ostream& errors) {
  TRY_ASSIGN(const std::string description, describe(command.plan));
  if (command.keep && is_host_of(command.plan, command.directory)) {
    out << "kept " << description << ", in " << command.directory << "\n";
    return {};
  }
  TRY(write_alone(command.plan, command.directory));
  out << "wrote " << description << ", in " << command.directory << "\n";
  if (!command.type_from_node.empty() && has_plain_files_for_devices(command.directory)) {
    errors << "neuron-sim: the device nodes are plain files, since this process cannot create others (needs root and "
              "the capability MKNOD, outside a user namespace): container runtimes refuse them\n";
  }
  return {};
}

// In a pod, the agent would offer the simulated devices in place of the node's own, and running pods would lose theirs.
// /sys is the node's in every container.
Result<void> refuse_hardware(const std::string& machine) {
  TRY_ASSIGN(const host::FsRoot root, host::FsRoot::open(machine));
  host::PciInventory pci;
  static_cast<void>(pci.refresh(root));
  const auto& functions = pci.amazon_functions();
  const auto devices = std::ranges::count_if(
      functions, [](const auto& function) { return model::family_of_pci_id(function.device_id).has_value(); });
  const auto interfaces = std::ranges::count_if(functions, host::is_efa);
  if (devices + interfaces == 0) return {};
  return fail(ErrorCode::failed_precondition,
              fmt::format("this node has {} Neuron devices and {} EFA interfaces of its own (sys/bus/pci/devices), and "
                          "simulated ones would be offered in their place; keep this pod off such nodes and serve them "
                          "with manifests/static/neuron-agent.yaml, or use --beside-hardware "
                          "(NEURON_SIM_BESIDE_HARDWARE=true)",
                          devices, interfaces));
}

// Checks the name of the node, since a request with a wrong one would only look like an API server that does not
// answer, and that the node may be simulated.
Result<void> check_node(const NodeCommand& command) {
  if (command.type_from_node.empty()) return {};
  auto named = kube::check_node_name(command.type_from_node);
  if (!named) return fail(std::move(named).error().with_context("--type-from-node"));
  return command.beside_hardware ? Result<void>() : refuse_hardware(command.machine);
}

std::vector<std::string> runtime_variables() {
  std::vector<std::string> lines;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view line(*variable);
    if (line.starts_with("NEURON_RT_")) lines.push_back(printable(line));
  }
  std::ranges::sort(lines);
  return lines;
}

struct Node {
  std::string folder, stem;
  std::optional<int> number;  // after the stem
  friend auto operator<=>(const Node&, const Node&) = default;
};

Node node_of(const std::string& folder, const std::string& name) {
  const auto digits = name.find_last_not_of("0123456789") + 1;
  return {folder, name.substr(0, digits), parse_int(std::string_view(name).substr(digits), 0, 1 << 20)};
}

std::string path_of(const Node& node) {
  return "/dev/" + node.folder + node.stem + (node.number ? std::to_string(*node.number) : "");
}

// neuron10 after neuron2; devices first, then interfaces.
std::vector<Node> device_nodes(const std::string& root) {
  std::vector<Node> found;
  for (const std::string folder : {"", "infiniband/"}) {
    for (const std::string& name : names_in(root + "/dev/" + folder)) {
      Node node = node_of(folder, name);
      if (!folder.empty() || (node.stem == "neuron" && node.number)) found.push_back(std::move(node));
    }
  }
  std::ranges::sort(found);
  return found;
}

// Prints one line. False when it is a simulated device that may not be used.
bool show_node(const std::string& root, const Node& node, std::ostream& out) {
  const std::string path = path_of(node);
  out << printable(path) << "  ";
  struct stat info {};
  if (::stat((root + path).c_str(), &info) != 0) {
    out << std::strerror(errno) << "\n";
    return true;
  }
  if (!S_ISCHR(info.st_mode)) {
    out << "no device node\n";
    return true;
  }
  out << "character device " << major(info.st_rdev) << ":" << minor(info.st_rdev);
  if (info.st_rdev != makedev(1, 3)) {
    out << "\n";
    return true;
  }
  const Fd opened(::open((root + path).c_str(), O_RDWR | O_CLOEXEC));
  out << ", simulated, " << (opened.valid() ? "opens" : std::strerror(errno)) << "\n";
  return opened.valid();
}

}  // namespace

LabelAnswer ask_type_label(const kube::InClusterPlaces& places, const std::string& node, milliseconds budget) {
  const auto end = Clock::now() + budget;
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    auto label = ask_once(places, node, std::max(left, milliseconds(1)));
    if (label) return {*std::move(label), "", false};
    const bool passing = is_passing(label.error().code);
    if (!passing || Clock::now() + kPause >= end) return {std::nullopt, label.error().message, passing};
    std::this_thread::sleep_for(kPause);
  }
}

void add_node_command(CLI::App& app, int& exit_code) {
  auto command = std::make_shared<NodeCommand>();
  auto* node = app.add_subcommand("node", "Write the directory of a simulated node");
  node->add_option("DIR", command->directory, "New, empty, or simulated before (then rewritten)");
  node->add_option("--instance-type", command->plan.instance_type, "EC2 type, see --list")
      ->envname("NEURON_SIM_INSTANCE_TYPE");
  node->add_option("--driver", command->plan.driver_version, "Neuron driver, 2.21.37.0 to\n2.31.7.0 (default 2.30.2.0)")
      ->envname("NEURON_SIM_DRIVER");
  node->add_option("--lnc", command->plan.lnc, "Write the LNC file: 1 or 2")->envname("NEURON_SIM_LNC");
  node->add_option("--missing", command->plan.missing, "Devices that are absent, e.g. 3,5")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->envname("NEURON_SIM_MISSING");
  node->add_option("--without", command->without, "Leave out efa, uverbs, ioctl,\ndriver")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->envname("NEURON_SIM_WITHOUT");
  node->add_option("--ultraserver", command->ultraserver,
                   "busy, alone, 2 or 4, or 4:3 for node 3 of\n4; for types of UltraServers only")
      ->envname("NEURON_SIM_ULTRASERVER");
  node->add_option("--type-from-node", command->type_from_node,
                   "In a pod: read the type from the label\nneuron-agent/simulate of this node")
      ->type_name("NODE")
      ->envname("NEURON_SIM_TYPE_FROM_NODE");
  node->add_flag("--beside-hardware", command->beside_hardware,
                 "With --type-from-node: also on machines\nwith Neuron or EFA hardware")
      ->envname("NEURON_SIM_BESIDE_HARDWARE");
  node->add_flag("--keep", command->keep, "Keep an existing host of the same type\nand options, with its faults")
      ->envname("NEURON_SIM_KEEP");
  node->add_flag("--list", command->list, "Print the known types and exit");
  node->callback([command, &exit_code] { exit_code = run_node_command(*command, std::cout, std::cerr); });
}

int run_node_command(NodeCommand command, std::ostream& out, std::ostream& errors) {
  const auto report = [&errors](const Error& error) {
    errors << "neuron-sim: " << error.message << "\n";
    return error.code == ErrorCode::invalid_argument ? kExitUsage : kExitFailed;
  };
  if (command.list) {
    out << type_table();
    return kExitOk;
  }
  if (command.directory.empty()) {
    return report(make_error(ErrorCode::invalid_argument, "node: give the DIR to write into"));
  }
  for (const auto& text : command.without) {
    const auto part = parse_part(text);
    if (!part) return report(part.error());
    command.plan.without.insert(*part);
  }
  if (!command.ultraserver.empty()) {
    const auto ultraserver = parse_ultraserver(command.ultraserver);
    if (!ultraserver) return report(ultraserver.error());
    command.plan.ultraserver = *ultraserver;
  }
  if (auto usable = check_node(command); !usable) return report(usable.error());
  const std::string given_type = command.plan.instance_type;
  if (!command.type_from_node.empty()) {
    if (choose_type(command, errors) == Choice::leave_as_it_is) return kExitOk;
  } else if (given_type.empty()) {
    return report(
        make_error(ErrorCode::invalid_argument, "node: give --instance-type (neuron-sim node --list shows all)"));
  }
  auto done = write_or_keep(command, out, errors);
  if (done) return kExitOk;
  const bool is_labelled = command.plan.instance_type != given_type && done.error().code == ErrorCode::invalid_argument;
  return report(is_labelled ? std::move(done).error().with_context(label_of(command.type_from_node)) : done.error());
}

void add_show_command(CLI::App& app, int& exit_code) {
  auto root = std::make_shared<std::string>("/");
  auto* show = app.add_subcommand("show", "In a container: show its devices");
  show->add_option("--root", *root, "Look below this directory (default /)")->type_name("DIR");
  show->callback([root, &exit_code] { exit_code = run_show_command(*root, std::cout, std::cerr); });
}

int run_show_command(const std::string& root, std::ostream& out, std::ostream& errors) {
  const auto variables = runtime_variables();
  for (const auto& line : variables) out << line << "\n";
  const auto nodes = device_nodes(root);
  bool is_usable = true;
  for (const auto& node : nodes) is_usable = show_node(root, node, out) && is_usable;
  if (nodes.empty()) {
    errors << "neuron-sim: no device of Neuron or EFA in " << (std::filesystem::path(root) / "dev").string()
           << ": this container has none (a limit such as aws.amazon.com/neuron: 1 requests one)\n";
    return kExitFailed;
  }
  return is_usable ? kExitOk : kExitFailed;
}

}  // namespace neuron::sim
