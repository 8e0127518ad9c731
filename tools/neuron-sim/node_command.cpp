#include "tools/neuron-sim/node_command.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "agent/base/parse.h"
#include "agent/host/fs_root.h"
#include "agent/host/pci.h"
#include "agent/kube/api.h"
#include "agent/model/device.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/host_writer.h"
#include "tools/neuron-sim/instance_choice.h"
#include "tools/neuron-sim/type_table.h"

namespace neuron::sim {
namespace {

// Exit codes, as in neuron-sim(1).
constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

std::string label_of(const std::string& node) {
  return std::string("the label ") + kTypeLabel + " of node " + printable(node);
}

// While no load plays there. What was begun in a new or empty directory goes again when it cannot be finished.
Result<void> write_alone(const HostPlan& plan, const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  Fd alone;
  if (require_simulated(directory)) {
    TRY_ASSIGN(alone, claim_host(directory));
  }
  const bool is_there = fs::exists(directory, error);
  const bool is_empty = is_there && fs::is_directory(directory, error) && fs::is_empty(directory, error);
  auto written = write_host(plan, directory);
  if (written || (is_there && !is_empty)) return written;
  for (fs::directory_iterator it(directory, error), end; is_there && !error && it != end; it.increment(error)) {
    std::error_code ignored;
    fs::remove_all(it->path(), ignored);
  }
  if (!is_there) fs::remove_all(directory, error);
  return written;
}

enum class Choice { made, leave_as_it_is };

// Fills in the instance type from the node's label, or says why it could not.
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

// Does what is left to do once the type is known.
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

// In a pod, the simulated devices take the place of the node's own in what the agent beside us offers: pods that run
// would lose theirs. /sys is the node's in every container.
Result<void> refuse_hardware(const std::string& machine) {
  TRY_ASSIGN(const host::FsRoot root, host::FsRoot::open(machine));
  host::PciInventory pci;
  static_cast<void>(pci.refresh(root));
  const auto count = [&pci](auto&& wanted) {
    return std::count_if(pci.amazon_functions().begin(), pci.amazon_functions().end(), wanted);
  };
  const auto devices =
      count([](const host::PciFunction& function) { return model::family_of_pci_id(function.device_id).has_value(); });
  const auto interfaces = count([](const host::PciFunction& function) { return host::is_efa(function); });
  if (devices + interfaces == 0) return {};
  return fail(ErrorCode::failed_precondition,
              "this node has " + std::to_string(devices) + " Neuron devices and " + std::to_string(interfaces) +
                  " EFA interfaces of its own (sys/bus/pci/devices), and simulated ones would be offered in their "
                  "place; keep this pod off such nodes and serve them with manifests/static/neuron-agent.yaml, or use "
                  "--beside-hardware (NEURON_SIM_BESIDE_HARDWARE=true)");
}

// Whether the node that is asked about may have such a name: asked for, a wrong one would only look like an API server
// that does not answer. And whether it may be simulated.
Result<void> check_node(const NodeCommand& command) {
  if (command.type_from_node.empty()) return {};
  auto named = kube::check_node_name(command.type_from_node);
  if (!named) return fail(std::move(named).error().with_context("--type-from-node"));
  return command.beside_hardware ? Result<void>() : refuse_hardware(command.machine);
}

}  // namespace

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

}  // namespace neuron::sim
