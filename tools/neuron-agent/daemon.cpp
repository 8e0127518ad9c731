#include "tools/neuron-agent/daemon.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>

#include "agent/core/catalogue.h"
#include "agent/health/assess.h"
#include "agent/host/core_memory.h"
#include "agent/host/scanner.h"
#include "agent/monitor/monitor.h"
#include "plugin/device/cdi.h"
#include "plugin/device/event_queue.h"
#include "plugin/device/supervisor.h"
#include "plugin/kubelet/checkpoint.h"
#include "tools/neuron-agent/offer_log.h"

namespace neuron::agent {
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
  for (const std::string& problem : sentences(host.problems)) spdlog::warn("host problem=\"{}\"", problem);
  for (const auto& device : host.devices) {
    for (const std::string& problem : sentences(device.problems)) {
      spdlog::warn("neuron{} problem=\"{}\"", device.index, problem);
    }
  }
  for (const auto& efa : host.efas) {
    for (const std::string& problem : sentences(efa.problems)) {
      spdlog::warn("efa={} problem=\"{}\"", efa.name.empty() ? to_string(efa.bdf) : efa.name, problem);
    }
  }
}

// What the machine looks like, said when it changes in kind, not with every counter.
class InventoryLog {
 public:
  explicit InventoryLog(core::OfferPolicy offer) : offer_(std::move(offer)) {}
  void operator()(const model::HostScan& host) {
    std::string text = fmt::format("instance-type={} driver={} layout={} devices={} efas={}",
                                   host.instance_type.empty() ? "unknown" : host.instance_type,
                                   host.driver_version.empty() ? "none" : host.driver_version, to_string(host.layout),
                                   host.devices.size(), host.efas.size());
    if (host.lnc) text += fmt::format(" lnc={}", host.lnc->value);
    std::vector<model::ReadProblem> problems = host.problems;
    for (const auto& device : host.devices) {
      problems.insert(problems.end(), device.problems.begin(), device.problems.end());
    }
    if (text == last_ && problems == last_problems_) return;
    if (text != last_) {
      spdlog::info("node {}", text);
      log_missing(host);
      log_offer(host);
    }
    if (host.devices.empty() && host.efas.empty() && last_.empty()) {
      spdlog::info("no Neuron device and no EFA interface here; nothing is advertised until one appears");
    }
    if (problems != last_problems_) log_problems(host);
    last_ = std::move(text);
    last_problems_ = std::move(problems);
  }

 private:
  // Once, and again only where another set of devices changes what there is to say.
  void log_offer(const model::HostScan& host) {
    std::string said;
    const std::vector<OfferLine> lines = offer_lines(offer_, host);
    for (const OfferLine& line : lines) said += line.text;
    if (said == last_offer_) return;
    last_offer_ = std::move(said);
    for (const OfferLine& line : lines)
      spdlog::log(line.warning ? spdlog::level::warn : spdlog::level::info, line.text);
  }

  core::OfferPolicy offer_;
  std::string last_;
  std::vector<model::ReadProblem> last_problems_;
  std::string last_offer_;
};

ExitCode to_exit_code(plugin::Supervisor::Outcome outcome) {
  switch (outcome) {
    case plugin::Supervisor::Outcome::stopped:
      return ExitCode::ok;
    case plugin::Supervisor::Outcome::other_agent:
      return ExitCode::other_agent;
    case plugin::Supervisor::Outcome::dead_mount:
      return ExitCode::dead_mount;
    case plugin::Supervisor::Outcome::failed:
      break;
  }
  return ExitCode::failed;
}

plugin::ResponseOptions response_options(const Options& options) {
  return {options.effective_host_path_prefix(),
          options.core_numbering == "host" ? plugin::CoreNumbering::host : plugin::CoreNumbering::container,
          options.cdi};
}

// On the monitor's thread, before the kubelet can hear of a new unit. Says once what keeps the specs from being
// written.
class CdiWriter {
 public:
  explicit CdiWriter(const Options& options) : options_(options) {}
  void operator()(const plugin::NodeView& view) {
    if (!options_.cdi) return;
    const auto written = plugin::write_cdi_specs(view, response_options(options_), options_.cdi_dir);
    const std::string error = written ? "" : written.error().message;
    if (error == last_error_) return;
    if (!written) spdlog::error("cdi specs not written, containers may not start: {}", error);
    if (written) spdlog::info("cdi specs written again");
    last_error_ = error;
  }

 private:
  const Options& options_;
  std::string last_error_;
};

using RootPtr = std::shared_ptr<const host::FsRoot>;  // shared with reads that hang

// A scanner of its own, which lives as long as a scan of it may hang.
monitor::WatchedScan::Scan make_scan(const RootPtr& root) {
  struct Machine {
    RootPtr root;
    host::Scanner scanner;
    explicit Machine(RootPtr opened) : root(std::move(opened)), scanner(*root, host::Scanner::Options{}) {}
  };
  return [machine = std::make_shared<Machine>(root)](const host::MayRead& may_read) {
    return machine->scanner.scan(may_read);
  };
}

std::optional<std::uint64_t> memory_in_use(const host::FsRoot& root, const plugin::AllocationDesk& desk, int device,
                                           int core) {
  const plugin::NodeViewPtr view = desk.view();
  const model::NeuronDevice* known = view ? view->device(device) : nullptr;
  return host::process_memory_of_core(root, device, core, known != nullptr ? known->memory_bytes : std::nullopt);
}

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

ExitCode run_daemon(const Options& options, const Fd& signals) {
  std::string line;
  for (const std::string& option : describe(options)) line += " " + option;
  spdlog::info("starting{}", line);
  if (!options.node_groups.empty()) {
    spdlog::info("node groups: {} applies; a change of {} counts from the next start",
                 options.node_group.empty() ? "none of them" : '"' + options.node_group + '"', options.node_groups);
  }

  auto root = host::FsRoot::open(options.root);
  auto events = plugin::EventQueue::open();
  if (!root || !events) {
    spdlog::error("{}", !root ? root.error().message : events.error().message);
    return ExitCode::failed;
  }

  const RootPtr machine = std::make_shared<const host::FsRoot>(*std::move(root));
  const SystemClock clock;
  monitor::SnapshotStore store;
  const std::string checkpoint = options.device_plugins_dir() + "/" + std::string(plugin::kCheckpointName);
  plugin::AllocationDesk desk(
      response_options(options), [checkpoint] { return plugin::checkpoint_mark(checkpoint); }, clock,
      options.offer_policy());
  monitor::Workers workers;
  monitor::Monitor monitor(
      store, workers, [machine] { return make_scan(machine); },
      [&desk, &queue = **events, log = InventoryLog(options.offer_policy()),
       write_cdi = CdiWriter(options)](const model::SnapshotPtr& snapshot) mutable {
        log(snapshot->host);
        auto view = std::make_shared<const plugin::NodeView>(snapshot);
        write_cdi(*view);
        desk.set_view(std::move(view));
        queue.post(plugin::SnapshotChanged{});
      },
      {.interval = options.scan_interval});
  plugin::PreStartGate gate(
      desk, [machine, &desk](int device, int core) { return memory_in_use(*machine, desk, device, core); },
      [&workers](plugin::PreStartGate::Job job) { workers.run(std::move(job)); },
      [&monitor](SteadyTime when, plugin::PreStartGate::Job job) { monitor.post(when, std::move(job)); }, clock);
  monitor.start();

  ExitCode code = ExitCode::failed;
  {
    plugin::Supervisor supervisor({{options.device_plugins_dir(), options.pod_resources_socket(),
                                    options.pod_resources_interval, options.offer_policy()},
                                   clock,
                                   **events,
                                   desk,
                                   gate,
                                   [&monitor] { monitor.rescan_now(); }},
                                  signals.get());
    code = to_exit_code(supervisor.run());
  }
  // What hangs in a broken driver is left behind, and what it uses is never freed: the process ends at once.
  constexpr std::chrono::milliseconds kPatience{500};
  if (!monitor.stop(kPatience) || !workers.stop(kPatience)) {
    spdlog::warn("a read hangs inside the driver; leaving it behind");
    spdlog::shutdown();
    ::_exit(static_cast<int>(code));
  }
  spdlog::info("stopped");
  return code;
}

ExitCode print_once(const Options& options) {
  auto root = host::FsRoot::open(options.root);
  if (!root) {
    spdlog::error("{}", root.error().message);
    return ExitCode::failed;
  }
  host::Scanner scanner(*root, host::Scanner::Options{});
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = 1;
  health::AssessMemory memory;
  health::Assessment node = health::assess(scanner.scan(), memory, std::chrono::steady_clock::now());
  snapshot->host = std::move(node.host);
  snapshot->device_health = std::move(node.devices);
  snapshot->core_health = std::move(node.cores);
  snapshot->efa_health = std::move(node.efas);
  log_missing(snapshot->host);
  log_problems(snapshot->host);
  const plugin::NodeView view(snapshot);
  const core::OfferPolicy offer = options.offer_policy();
  for (const model::Resource resource : model::kAllResources) {
    if (!offer.serves(resource)) continue;
    const plugin::UnitList list = plugin::make_unit_list(view, resource, offer, {});
    const auto healthy = std::count_if(list.begin(), list.end(), [](const auto& unit) { return unit.healthy; });
    fmt::print("{} {} of {} allocatable\n", model::resource_name(resource), healthy, list.size());
  }
  return ExitCode::ok;
}

}  // namespace neuron::agent
