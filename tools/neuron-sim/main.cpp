#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>
#include <vector>

#include "agent/base/standard_streams.h"
#include "neuron_version.h"
#include "tools/neuron-sim/fault_keys.h"
#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/host_writer.h"
#include "tools/neuron-sim/load_command.h"
#include "tools/neuron-sim/type_table.h"
#ifdef NEURON_SIM_WITH_KUBELET
#include "tools/neuron-sim/kubelet/command.h"
#endif

namespace neuron::sim {
namespace {

// Exit codes, as in neuron-sim(1).
constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

struct NodeFlags {
  std::string directory;
  HostPlan plan;
  std::vector<std::string> without;
  bool list = false;
};

struct SetFlags {
  std::string directory;
  std::string target;
  std::vector<std::string> actions;
  bool list = false;
};

int report(const Error& error) {
  std::fprintf(stderr, "neuron-sim: %s\n", error.message.c_str());
  return error.code == ErrorCode::invalid_argument ? kExitUsage : kExitFailed;
}

int usage(const char* text) {
  std::fprintf(stderr, "neuron-sim: %s\n", text);
  return kExitUsage;
}

void add_node_command(CLI::App& app, NodeFlags& flags) {
  auto* node = app.add_subcommand("node", "Write the directory of a simulated node");
  node->add_option("DIR", flags.directory, "New, empty, or simulated before (then rewritten)");
  node->add_option("--instance-type", flags.plan.instance_type, "EC2 type, see --list")
      ->envname("NEURON_SIM_INSTANCE_TYPE");
  node->add_option("--driver", flags.plan.driver_version, "Neuron driver, 2.24.7.0 to\n2.31.7.0 (default 2.30.2.0)")
      ->envname("NEURON_SIM_DRIVER");
  node->add_option("--lnc", flags.plan.lnc, "Write the LNC file: 1 or 2")->envname("NEURON_SIM_LNC");
  node->add_option("--missing", flags.plan.missing, "Devices that are absent, e.g. 3,5")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->envname("NEURON_SIM_MISSING");
  node->add_option("--without", flags.without, "Leave out efa, uverbs, ioctl,\ndriver")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->envname("NEURON_SIM_WITHOUT");
  node->add_flag("--list", flags.list, "Print the known types and end");
}

void add_set_command(CLI::App& app, SetFlags& flags) {
  auto* set = app.add_subcommand("set", "Change a value of a simulated node, or break a part");
  set->add_option("DIR", flags.directory, "A simulated node");
  set->add_option("TARGET", flags.target, "host, neuron3, neuron3/core1,\nrdmap16s25");
  set->add_option("ACTION", flags.actions, "KEY=VALUE or a verb, see --list");
  set->add_flag("--list", flags.list, "Print all keys and verbs and end");
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

int run_node(NodeFlags& flags) {
  if (flags.list) {
    std::fputs(type_table().c_str(), stdout);
    return kExitOk;
  }
  if (flags.directory.empty()) return usage("node: give the DIR to write into");
  if (flags.plan.instance_type.empty()) return usage("node: give --instance-type (neuron-sim node --list shows all)");
  for (const auto& text : flags.without) {
    const auto part = parse_part(text);
    if (!part) return report(part.error());
    flags.plan.without.insert(*part);
  }
  const auto description = describe(flags.plan);
  if (!description) return report(description.error());
  if (const auto written = write_alone(flags.plan, flags.directory); !written) return report(written.error());
  std::printf("wrote %s, in %s\n", description->c_str(), flags.directory.c_str());
  return kExitOk;
}

int run_set(const SetFlags& flags) {
  if (flags.list) {
    std::fputs(list_faults().c_str(), stdout);
    return kExitOk;
  }
  if (flags.directory.empty() || flags.target.empty() || flags.actions.empty()) {
    return usage("set: give DIR, TARGET and at least one ACTION (neuron-sim set --list shows all)");
  }
  if (const auto applied = apply_fault(flags.directory, flags.target, flags.actions); !applied) {
    return report(applied.error());
  }
  std::string done;
  for (const auto& action : flags.actions) done += " " + action;
  std::printf("%s:%s\n", flags.target.c_str(), done.c_str());
  return kExitOk;
}

int run(int argc, char** argv) {
  CLI::App app("Simulated nodes with AWS Neuron and EFA: directories that the other programs\ntake as --root",
               "neuron-sim");
  app.set_version_flag("--version", std::string("neuron-sim ") + kVersion);
  app.require_subcommand(1);
  app.get_formatter()->column_width(26);
  NodeFlags node;
  SetFlags set;
  add_node_command(app, node);
  add_set_command(app, set);
  int command_exit = kExitOk;  // of the commands that run while the options are read
  add_load_command(app, command_exit);
#ifdef NEURON_SIM_WITH_KUBELET
  add_kubelet_command(app, command_exit);
#endif
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (app.got_subcommand("node")) return run_node(node);
  if (app.got_subcommand("set")) return run_set(set);
  return command_exit;
}

}  // namespace
}  // namespace neuron::sim

int main(int argc, char** argv) {
  neuron::open_standard_streams();
  const int code = neuron::sim::run(argc, argv);
  const bool told = static_cast<bool>(std::cout.flush()) && std::fflush(stdout) == 0;
  if (told || code != 0) return code;
  std::fputs("neuron-sim: standard output cannot be written\n", stderr);
  return neuron::sim::kExitFailed;
}
