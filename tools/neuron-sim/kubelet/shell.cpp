#include "tools/neuron-sim/kubelet/shell.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <istream>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <utility>

#include "agent/base/mutex.h"
#include "agent/base/parse.h"
#include "agent/core/complete.h"
#include "agent/host/fs_root.h"
#include "agent/host/root_source.h"
#include "agent/host/scanner.h"

namespace neuron::sim {
namespace {

struct Settings {
  std::map<std::string, int> wait_for;
  std::chrono::milliseconds timeout{};
  KubeletOptions kubelet;
};

Result<NumaPolicy> parse_numa_policy(const std::string& text) {
  if (text == "none") return NumaPolicy::none;
  if (text == "best-effort") return NumaPolicy::best_effort;
  if (text == "single-numa-node") return NumaPolicy::single_numa_node;
  return fail(ErrorCode::invalid_argument,
              fmt::format("--numa-policy \"{}\": none, best-effort or single-numa-node", printable(text)));
}

Result<Settings> parse_settings(const KubeletCommand& command) {
  Settings settings;
  for (const std::string& text : command.wait_for) {
    auto count = parse_count(text);
    if (!count) return fail(std::move(count).error().with_context("--wait-for"));
    settings.wait_for.insert(std::move(*count));
  }
  auto timeout = parse_duration(command.timeout);
  if (!timeout) return fail(std::move(timeout).error().with_context("--timeout"));
  settings.timeout = *timeout;
  TRY_ASSIGN(settings.kubelet.numa_policy, parse_numa_policy(command.numa_policy));
  settings.kubelet.seed = command.seed;
  return settings;
}

// A directory, or an archive for as long as this exists.
struct Machine {
  host::RootSource source;
  host::FsRoot root;
};

// Scans the node for every pod: a device may have left since. Without hwloc: the NUMA nodes of devices and
// interfaces come from their own files and the tables.
Result<Shell::HostReader> host_reader(const std::string& argument) {
  if (argument.empty()) return Shell::HostReader();
  TRY_ASSIGN(auto source, host::RootSource::open(argument));
  TRY_ASSIGN(auto root, host::FsRoot::open(source.directory()));
  const auto machine = std::make_shared<const Machine>(Machine{std::move(source), std::move(root)});
  return Shell::HostReader([machine] {
    host::Scanner scanner(machine->root, {.with_topology = false, .with_processes = false});
    return core::complete(scanner.scan());
  });
}

int run_script(Shell& shell, const KubeletCommand& command, std::istream& input, std::ostream& errors) {
  if (command.script.empty() || command.script == "-") {
    const bool interactive = &input == &std::cin && ::isatty(STDIN_FILENO) != 0;
    return shell.run(input, interactive ? "kubelet> " : "");
  }
  std::ifstream file(command.script);
  if (!file) {
    errors << "neuron-sim kubelet: cannot read the script " << command.script << "\n";
    return 1;
  }
  return shell.run(file, "");
}

}  // namespace

Shell::Shell(Kubelet& kubelet, std::ostream& out, std::ostream& errors, std::chrono::milliseconds wait_timeout,
             HostReader read_host)
    : kubelet_(kubelet), out_(out), errors_(errors), wait_timeout_(wait_timeout), read_host_(std::move(read_host)) {}

int Shell::run(std::istream& input, std::string_view prompt) {
  int exit_code = 0;
  std::string line;
  for (int number = 1; out_ << prompt << std::flush, std::getline(input, line); ++number) {
    const auto command = parse_command(line);
    if (command && *command && (*command)->verb == Verb::quit) break;
    const Result<void> done = !command ? fail(command.error()) : *command ? execute(**command) : Result<void>();
    if (!done) {
      errors_ << "line " << number << ": " << done.error().message << "\n" << std::flush;
      exit_code = 1;
    }
  }
  return exit_code;
}

Result<void> Shell::execute(const Command& command) {
  switch (command.verb) {
    case Verb::pod:
      admit(command.pod);
      break;
    case Verb::remove:
      TRY(kubelet_.remove(command.pod.name, command.pod.ns));
      out_ << "pod " << command.pod.name << ": deleted\n";
      break;
    case Verb::start:
      return start(command.pod);
    case Verb::list:
      out_ << pods_text(kubelet_.pods());
      break;
    case Verb::show:
      out_ << resources_text(kubelet_.resources());
      break;
    case Verb::wait:
      return wait(command.counts);
    case Verb::restart:
      TRY(kubelet_.restart());
      out_ << "kubelet: restarted; plugin sockets wiped, checkpoint loaded\n";
      break;
    case Verb::down:
      kubelet_.go_down();
      out_ << "kubelet: down\n";
      break;
    case Verb::up:
      TRY(kubelet_.come_up());
      out_ << "kubelet: up; plugin sockets wiped, checkpoint loaded\n";
      break;
    case Verb::advance:
      kubelet_.advance(command.duration);
      break;
    case Verb::echo:
      out_ << command.text << "\n";
      break;
    case Verb::help:
      out_ << script_help();
      break;
    case Verb::quit:
      break;
  }
  out_ << std::flush;
  return {};
}

void Shell::admit(const PodSpec& pod) {
  std::optional<model::HostScan> host;
  if (read_host_) host = read_host_();
  const NodeUse before{kubelet_.pods(), kubelet_.resources()};
  const Result<PodResult> result = kubelet_.admit(pod);
  const NodeUse after{kubelet_.pods(), kubelet_.resources()};
  out_ << pod_text(pod, result, explain_pod(pod, result, before, after, host ? &*host : nullptr));
}

Result<void> Shell::start(const PodSpec& pod) {
  const auto pods = kubelet_.pods();
  const auto found = std::ranges::find_if(pods, [&](const auto& p) { return p.name == pod.name && p.ns == pod.ns; });
  if (found == pods.end()) {
    return fail(ErrorCode::not_found, fmt::format("no pod {} in namespace {}", pod.name, pod.ns));
  }
  const std::string& container = pod.containers.empty() ? found->containers.back().name : pod.containers[0].name;
  TRY_ASSIGN(const ContainerGrant grant, kubelet_.start_container(pod.name, container, pod.ns));
  out_ << "pod " << pod.name << ": container restarted\n" << container_text(grant) << std::flush;
  return {};
}

Result<void> Shell::wait(const std::map<std::string, int>& counts) {
  const auto begin = std::chrono::steady_clock::now();
  const bool reached = kubelet_.wait_for(
      [&] {
        const auto resources = kubelet_.resources();
        return std::ranges::all_of(counts, [&](const auto& wanted) {
          const auto view = resources.find(wanted.first);
          return (view == resources.end() ? 0 : view->second.allocatable) == wanted.second;
        });
      },
      wait_timeout_);
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  for (const auto& [resource, wanted] : counts) {
    const ResourceView view = kubelet_.resource_view(resource);
    if (!reached && view.allocatable != wanted) {
      return fail(ErrorCode::deadline_exceeded,
                  fmt::format("waited {} ms for {}={}: {} of {} allocatable", waited.count(), resource, wanted,
                              view.allocatable, view.capacity));
    }
  }
  for (const auto& [resource, wanted] : counts) {
    const ResourceView view = kubelet_.resource_view(resource);
    out_ << fmt::format("{}: {} of {} allocatable\n", resource, view.allocatable, view.capacity);
  }
  out_ << fmt::format("reached after {} ms\n", waited.count()) << std::flush;
  return {};
}

void add_kubelet_command(CLI::App& app, int& exit_code) {
  const auto command = std::make_shared<KubeletCommand>();  // lives as long as the callback
  CLI::App* kubelet = app.add_subcommand("kubelet", "Simulated kubelet: registers plugins, admits pods");
  kubelet->add_option("--kubelet-dir", command->kubelet_dir, "The kubelet's directory, made if missing")
      ->envname("NEURON_SIM_KUBELET_DIR")
      ->required();
  kubelet
      ->add_option("--root", command->root,
                   "The host that the agent reads: each answer\nthen shows the reason and the remainder")
      ->type_name("DIR")
      ->envname("NEURON_SIM_ROOT");
  kubelet->add_option("--wait-for", command->wait_for, "First wait for this allocatable\ncount, e.g. neuron=16")
      ->type_name("RES=N")
      ->take_all()
      ->allow_extra_args(false);
  kubelet->add_option("--timeout", command->timeout, "Time limit of each wait")
      ->type_name("TIME")
      ->envname("NEURON_SIM_TIMEOUT")
      ->capture_default_str();
  kubelet->add_option("--numa-policy", command->numa_policy, "none, best-effort or\nsingle-numa-node")
      ->type_name("POLICY")
      ->envname("NEURON_SIM_NUMA_POLICY")
      ->capture_default_str();
  kubelet->add_option("--seed", command->seed, "Order of resources and ids")
      ->envname("NEURON_SIM_SEED")
      ->capture_default_str();
  kubelet->add_flag("-v,--verbose", command->verbose, "Log events on stderr");
  kubelet->add_option("SCRIPT", command->script, "Commands, one per line (try help);\ndefault: standard input");
  kubelet->callback(
      [command, &exit_code] { exit_code = run_kubelet_command(*command, std::cin, std::cout, std::cerr); });
}

int run_kubelet_command(const KubeletCommand& command, std::istream& input, std::ostream& out, std::ostream& errors) {
  Result<Settings> settings = parse_settings(command);
  if (!settings) {
    errors << "neuron-sim kubelet: " << settings.error().message << "\n";
    return 2;
  }
  auto read_host = host_reader(command.root);
  if (!read_host) {
    errors << "neuron-sim kubelet: --root: " << read_host.error().message << "\n";
    return 2;
  }
  Mutex events;
  if (command.verbose) {
    settings->kubelet.on_event = [&](const std::string& line) {
      MutexLock lock(events);
      errors << "kubelet: " << line << "\n" << std::flush;
    };
  }
  const auto kubelet = Kubelet::start(command.kubelet_dir, settings->kubelet);
  if (!kubelet) {
    errors << "neuron-sim kubelet: " << kubelet.error().message << "\n";
    return 1;
  }
  Shell shell(**kubelet, out, errors, settings->timeout, *std::move(read_host));
  if (!settings->wait_for.empty()) {
    if (const auto waited = shell.wait(settings->wait_for); !waited) {
      errors << "neuron-sim kubelet: " << waited.error().message << "\n";
      return 1;
    }
  }
  return run_script(shell, command, input, errors);
}

}  // namespace neuron::sim
