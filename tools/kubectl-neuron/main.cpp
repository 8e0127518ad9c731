#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <clocale>
#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "neuron_version.h"
#include "tools/kubectl-neuron/commands.h"

namespace neuron::fleet {
namespace {

struct Command {
  const char* name;
  const char* summary;
  std::function<void(CLI::App&)> add;  // its own options
  std::function<int()> run;
};

bool has_command(const std::vector<Command>& commands, std::string_view name) {
  return std::ranges::any_of(commands, [&](const Command& command) { return command.name == name; });
}

std::string version_text() {
  return std::string("kubectl-neuron ") + kVersion;
}

// Options of every command.
void add_common(CLI::App& command, Options& options) {
  command.set_version_flag("--version", version_text());
  if (CLI::Option* output = command.get_option_no_throw("--output"); output != nullptr) output->take_last();
  const char* group = "Cluster";
  const auto add = [&](const char* names, std::string& value, const char* help, const char* type) {
    command.add_option(names, value, help)->group(group)->type_name(type)->take_last();
  };
  command.add_option("--from", options.from, "Read a dump instead of a cluster")
      ->group(group)
      ->type_name("FILE")
      ->take_last()
      ->check(needs_name);
  add("-n,--namespace", options.cluster.kube_namespace, "Namespace (default: that of the context)", "NAME");
  add("--context", options.cluster.context, "As for kubectl", "NAME");
  add("--kubeconfig", options.cluster.kubeconfig, "As for kubectl", "FILE");
  add("--cluster", options.cluster.cluster, "As for kubectl", "NAME");
  add("--user", options.cluster.user, "As for kubectl", "NAME");
  add("--as", options.cluster.as, "As for kubectl", "NAME");
  command.add_option("--as-group", options.cluster.as_groups, "As for kubectl; repeatable")
      ->group(group)
      ->type_name("NAME")
      ->allow_extra_args(false);
  command.add_flag("--no-color", options.no_color, "No colour, as with NO_COLOR")->group(group);
}

int program(int argc, char** argv) {
  CLI::App app{"AWS Neuron devices of a Kubernetes cluster, through kubectl. Changes nothing."};
  app.name("kubectl-neuron");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  app.footer("Exit status: 0 success, 1 findings, 2 undetermined or wrong usage.");
  Options options;
  NodesOptions nodes;
  PodsOptions pods;
  WhyOptions why;
  PlanOptions plan;
  TopOptions top;
  MapOptions map;
  DumpOptions dump;
  const std::vector<Command> commands = {
      {"nodes", "A line per node, with sums", [&](CLI::App& command) { add_nodes(command, nodes); },
       [&] { return run_nodes(options, nodes); }},
      {"pods", "Pods with devices or interfaces, and waiting ones", [&](CLI::App& command) { add_pods(command, pods); },
       [&] { return run_pods(options, pods); }},
      {"why", "Why a pod waits, was refused or is badly placed", [&](CLI::App& command) { add_why(command, why); },
       [&] { return run_why(options, why); }},
      {"plan", "How many pods of a manifest fit, and where", [&](CLI::App& command) { add_plan(command, plan); },
       [&] { return run_plan(options, plan); }},
      {"top", "Live use by node, namespace and pod", [&](CLI::App& command) { add_top(command, top); },
       [&] { return run_top(options, top); }},
      {"map", "Draw the fleet as SVG or HTML", [&](CLI::App& command) { add_map(command, map); },
       [&] { return run_map(options, map); }},
      {"dump", "Write what the other commands read to one file", [&](CLI::App& command) { add_dump(command, dump); },
       [&] { return run_dump(options, dump); }},
  };
  for (const Command& command : commands) {
    CLI::App* added = app.add_subcommand(command.name, command.summary);
    command.add(*added);
    add_common(*added, options);
  }
  const std::string_view first = argc > 1 ? argv[1] : "-";
  if (!first.starts_with('-') && !has_command(commands, first)) {
    return fail_with(make_error(ErrorCode::invalid_argument, "no command " + printable(first, 100) + "; see --help"));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUnknown;
  }
  for (const Command& command : commands) {
    if (app.got_subcommand(command.name)) return command.run();
  }
  return kExitUnknown;
}

}  // namespace
}  // namespace neuron::fleet

int main(int argc, char** argv) {
  neuron::open_standard_streams();
  mallopt(M_ARENA_MAX, 2);        // 64 threads read: each arena more costs a tenth of the memory
  std::setlocale(LC_CTYPE, "");   // whether the terminal has UTF-8
  std::signal(SIGPIPE, SIG_IGN);  // a reader that leaves, and a full quota, are errors of a write
  std::signal(SIGXFSZ, SIG_IGN);
  return neuron::fleet::program(argc, argv);
}
