#include "agent/daemon/daemon.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "agent/core/assess.h"
#include "agent/core/catalogue.h"
#include "agent/daemon/event_queue.h"
#include "agent/daemon/supervisor.h"
#include "agent/host/core_memory.h"
#include "agent/host/scanner.h"
#include "agent/monitor/monitor.h"
#include "plugin/cdi.h"
#include "plugin/checkpoint.h"

namespace neuron::daemon {
namespace {

// Fewer than the instance type has: the kubelet cannot tell, so somebody must.
void log_missing(const model::HostScan& host) {
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  if (type == nullptr) return;
  const auto warn_if_short = [&](std::string_view what, std::size_t seen, int expected) {
    if (seen < static_cast<std::size_t>(expected)) {
      spdlog::warn("{} of {} {} of a {} are here; neuron-ls and the kernel log may tell why", seen, expected, what,
                   host.instance_type);
    }
  };
  warn_if_short("Neuron devices", host.devices.size(), type->device_count);
  warn_if_short("EFA interfaces", host.efas.size(), type->efa_count);
}

void log_problems(const model::HostScan& host) {
  for (const std::string& problem : host.problems) spdlog::warn("host problem=\"{}\"", problem);
  for (const auto& device : host.devices) {
    for (const std::string& problem : device.problems) spdlog::warn("neuron{} problem=\"{}\"", device.index, problem);
  }
  for (const auto& efa : host.efas) {
    for (const std::string& problem : efa.problems) {
      spdlog::warn("efa={} problem=\"{}\"", efa.name.empty() ? to_string(efa.bdf) : efa.name, problem);
    }
  }
}

// What the machine looks like, said when it changes in kind, not with every counter.
class InventoryLog {
 public:
  void operator()(const model::HostScan& host) {
    std::string text = fmt::format("instance-type={} driver={} layout={} devices={} efas={}",
                                   host.instance_type.empty() ? "unknown" : host.instance_type,
                                   host.driver_version.empty() ? "none" : host.driver_version, to_string(host.layout),
                                   host.devices.size(), host.efas.size());
    if (host.lnc) text += fmt::format(" lnc={}", host.lnc->value);
    std::string problems;
    for (const std::string& problem : host.problems) problems += problem;
    for (const auto& device : host.devices) {
      for (const std::string& problem : device.problems) problems += problem;
    }
    if (text == last_ && problems == last_problems_) return;
    if (text != last_) {
      spdlog::info("node {}", text);
      log_missing(host);
    }
    if (host.devices.empty() && host.efas.empty() && last_.empty()) {
      spdlog::info("no Neuron device and no EFA interface here; nothing is advertised until one appears");
    }
    if (problems != last_problems_) log_problems(host);
    last_ = std::move(text);
    last_problems_ = std::move(problems);
  }

 private:
  std::string last_;
  std::string last_problems_;
};

ExitCode to_exit_code(Supervisor::Outcome outcome) {
  switch (outcome) {
    case Supervisor::Outcome::stopped:
      return ExitCode::ok;
    case Supervisor::Outcome::other_agent:
      return ExitCode::other_agent;
    case Supervisor::Outcome::failed:
      break;
  }
  return ExitCode::failed;
}

plugin::ResponseOptions response_options(const config::Options& options) {
  return {options.effective_host_path_prefix(),
          options.core_numbering == "host" ? plugin::CoreNumbering::host : plugin::CoreNumbering::container,
          options.cdi};
}

// On the monitor's worker, before the kubelet can hear of a new unit.
void write_cdi(const plugin::NodeView& view, const config::Options& options) {
  if (!options.cdi) return;
  if (const auto written = plugin::write_cdi_specs(view, response_options(options), options.cdi_dir); !written) {
    spdlog::error("cdi specs not written, containers may not start: {}", written.error().message);
  }
}

// Everything the scan reads from; lives as long as the worker may.
struct Machine {
  host::FsRoot root;
  host::Scanner scanner;
  explicit Machine(host::FsRoot opened) : root(std::move(opened)), scanner(root, host::Scanner::Options{}) {}
};

}  // namespace

Result<Fd> block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return fail(error_from_errno(errno, "sigprocmask"));
  Fd fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return fail(error_from_errno(errno, "signalfd"));
  return fd;
}

ExitCode run_daemon(const config::Options& options, const Fd& signals) {
  std::string line;
  for (const std::string& option : config::describe(options)) line += " " + option;
  spdlog::info("starting{}", line);

  auto root = host::FsRoot::open(options.root);
  auto events = EventQueue::open();
  if (!root || !events) {
    spdlog::error("{}", !root ? root.error().message : events.error().message);
    return ExitCode::failed;
  }

  // A worker that hangs in a broken driver is left behind, so what it uses is never freed: the process ends anyway.
  auto machine = std::make_shared<Machine>(*std::move(root));
  const SystemClock clock;
  monitor::SnapshotStore store;
  const std::string checkpoint = options.device_plugins_dir() + "/" + std::string(plugin::kCheckpointName);
  plugin::AllocationDesk desk(
      response_options(options), [checkpoint] { return plugin::checkpoint_mark(checkpoint); }, clock);
  monitor::Monitor monitor(
      store, [machine] { return machine->scanner.scan(); },
      [&desk, &options, &queue = **events, log = InventoryLog()](const model::SnapshotPtr& snapshot) mutable {
        log(snapshot->host);
        auto view = std::make_shared<const plugin::NodeView>(snapshot);
        write_cdi(*view, options);
        desk.set_view(std::move(view));
        queue.post(SnapshotChanged{});
      },
      options.scan_interval);
  plugin::PreStartGate gate(
      desk, [machine](int device, int core) { return host::process_memory_of_core(machine->root, device, core); },
      [&monitor](SteadyTime when, std::function<void()> job) { monitor.post(when, std::move(job)); }, clock);
  monitor.start();

  ExitCode code = ExitCode::failed;
  {
    Supervisor supervisor({options, clock, **events, desk, gate, [&monitor] { monitor.rescan_now(); }}, signals.get());
    code = to_exit_code(supervisor.run());
  }
  constexpr std::chrono::milliseconds kPatience{1000};
  if (!monitor.stop(kPatience)) {
    spdlog::warn("the scan hangs inside the driver; leaving it behind");
    spdlog::shutdown();
    ::_exit(static_cast<int>(code));
  }
  spdlog::info("stopped");
  return code;
}

ExitCode print_once(const config::Options& options) {
  auto root = host::FsRoot::open(options.root);
  if (!root) {
    spdlog::error("{}", root.error().message);
    return ExitCode::failed;
  }
  host::Scanner scanner(*root, host::Scanner::Options{});
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = 1;
  core::AssessMemory memory;
  core::Assessment node = core::assess(scanner.scan(), memory, std::chrono::steady_clock::now());
  snapshot->host = std::move(node.host);
  snapshot->device_health = std::move(node.devices);
  snapshot->core_health = std::move(node.cores);
  snapshot->efa_health = std::move(node.efas);
  log_missing(snapshot->host);
  log_problems(snapshot->host);
  const plugin::NodeView view(snapshot);
  for (const plugin::Resource resource : plugin::kAllResources) {
    if (resource == plugin::Resource::neurondevice && !options.neurondevice) continue;
    const monitor::UnitList list = plugin::make_unit_list(view, resource, {});
    const auto healthy = std::count_if(list.begin(), list.end(), [](const auto& unit) { return unit.healthy; });
    fmt::print("{} {} of {} allocatable\n", plugin::resource_name(resource), healthy, list.size());
  }
  return ExitCode::ok;
}

}  // namespace neuron::daemon
