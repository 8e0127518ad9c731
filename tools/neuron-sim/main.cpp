#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "agent/base/fd.h"
#include "neuron_version.h"
#include "tools/neuron-sim/commands.h"
#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/kubelet/shell.h"

namespace neuron::sim {
namespace {

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

void add_set_command(CLI::App& app, SetFlags& flags) {
  auto* set = app.add_subcommand("set", "Change a value of a simulated node, or inject a fault");
  set->add_option("DIR", flags.directory, "A simulated node");
  set->add_option("TARGET", flags.target, "host, neuron3, neuron3/core1,\nrdmap16s25");
  set->add_option("ACTION", flags.actions, "KEY=VALUE or a verb, see --list");
  set->add_flag("--list", flags.list, "Print all keys and verbs and exit");
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
  CLI::App app("Simulated nodes with AWS Neuron and EFA: directories that the other programs\naccept as --root",
               "neuron-sim");
  app.set_version_flag("--version", std::string("neuron-sim ") + kVersion);
  app.require_subcommand(1);
  app.get_formatter()->column_width(26);
  SetFlags set;
  int command_exit = kExitOk;  // of the commands that run while the options are read
  add_node_command(app, command_exit);
  add_set_command(app, set);
  add_load_command(app, command_exit);
  add_show_command(app, command_exit);
  add_kubelet_command(app, command_exit);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  if (app.got_subcommand("set")) return run_set(set);
  return command_exit;
}

}  // namespace
}  // namespace neuron::sim

int main(int argc, char** argv) {
  neuron::open_standard_streams();
  const int code = neuron::sim::run(argc, argv);
  const bool flushed = static_cast<bool>(std::cout.flush()) && std::fflush(stdout) == 0;
  if (flushed || code != 0) return code;
  std::fputs("neuron-sim: cannot write to standard output\n", stderr);
  return neuron::sim::kExitFailed;
}
