#include "tools/neuron-agent/daemon.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "agent/host/neuron_sysfs.h"
#include "agent/monitor/monitor.h"
#include "plugin/device/cdi_files.h"
#include "plugin/device/event_queue.h"
#include "plugin/device/supervisor.h"
#include "plugin/kubelet/watched_checkpoint.h"
#include "tools/neuron-agent/daemon_parts.h"
#include "tools/neuron-agent/inventory_log.h"
#include "tools/neuron-agent/metrics_sources.h"
#include "tools/neuron-agent/node_status.h"
#include "tools/neuron-agent/offer_log.h"
#include "tools/neuron-agent/offered_figures.h"
#include "tools/neuron-agent/probes.h"

namespace neuron::agent {
namespace {

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

grant::GrantOptions response_options(const Options& options) {
  return {options.effective_host_path_prefix(), options.core_numbering, options.cdi};
}

// Which resources the kubelet watches.
std::map<std::string, bool> registered_in(const plugin::ServingState& state) {
  std::map<std::string, bool> registered;
  for (const plugin::ResourceReadiness& one : state.resources) {
    if (one.step == plugin::ServingStep::not_offered) continue;
    registered.emplace(model::resource_name(one.resource), one.step == plugin::ServingStep::registered);
  }
  return registered;
}

std::optional<std::uint64_t> memory_in_use(const host::FsRoot& root, const plugin::Allocations& allocations, int device,
                                           int core) {
  const grant::NodeUnitsPtr node = allocations.node();
  const model::NeuronDevice* known = node ? node->device(device) : nullptr;
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
  log_start(options);
  auto root = host::FsRoot::open(options.root);
  auto events = plugin::EventQueue::open();
  if (!root || !events) {
    spdlog::error("start failed: {}", !root ? root.error().message : events.error().message);
    return ExitCode::failed;
  }

  const RootPtr machine = std::make_shared<const host::FsRoot>(*std::move(root));
  const SystemClock clock;
  monitor::SnapshotStore store;
  Workers workers;
  const plugin::WatchedCheckpoint checkpoint(options.device_plugins_dir(), workers,
                                             [&queue = **events] { queue.post(plugin::CheckpointCameBack{}); });
  const auto version = [&checkpoint] { return checkpoint.version(); };
  plugin::Allocations allocations(response_options(options), version, clock, options.offer_policy(),
                                  options.dra.pool.driver);
  plugin::AdmissionGate admissions(clock, version, [&queue = **events] { queue.post(plugin::AdmissionsChanged{}); });
  NodeStatus node_status(options, clock);
  Workers cdi_workers;      // apart, so that the end of the program says which of them hangs
  Workers kubelet_workers;  // likewise
  plugin::CallFigures figures(plugin::DevicePluginService::counted_names(options.offer_policy()));
  const auto scan_timer = std::make_shared<ScanTimer>();
  const auto show = [&allocations, &queue = **events](grant::NodeUnitsPtr node) {
    allocations.set_node(std::move(node));
    queue.post(plugin::SnapshotChanged{});
  };
  std::shared_ptr<plugin::CdiSpecs> cdi_specs;  // only with --cdi; on the monitor's thread once that runs
  monitor::Monitor monitor(store, workers, scan_maker(machine, scan_timer, options.kernel_log),
                           [&node_status, &show, &cdi_specs,
                            log = InventoryLog(options.offer_policy())](const model::SnapshotPtr& snapshot) mutable {
                             log(snapshot);
                             node_status.set(snapshot);
                             auto node = std::make_shared<const grant::NodeUnits>(snapshot);
                             if (cdi_specs) {
                               cdi_specs->set_node(std::move(node));
                             } else {
                               show(std::move(node));
                             }
                           },
                           {.interval = options.scan_interval});
  if (options.cdi) {
    cdi_specs = std::make_shared<plugin::CdiSpecs>(
        plugin::CdiSpecs::Settings{options.cdi_dir, response_options(options), options.scan_interval},
        plugin::CdiSpecs::Ports{
            [&cdi_workers](plugin::CdiSpecs::Job job) { cdi_workers.run(std::move(job)); },
            [&monitor](SteadyTime when, plugin::CdiSpecs::Job job) { monitor.post(when, std::move(job)); }, show,
            [&queue = **events] { queue.post(plugin::CdiMountDead{}); }, clock});
  }
  plugin::PreStartGate pre_start(
      allocations,
      [machine, &allocations](int device, int core) { return memory_in_use(*machine, allocations, device, core); },
      [&workers](plugin::PreStartGate::Job job) { workers.run(std::move(job)); },
      [&monitor](SteadyTime when, plugin::PreStartGate::Job job) { monitor.post(when, std::move(job)); }, clock);
  monitor.start();

  ExitCode code = ExitCode::failed;
  std::optional<EndDeadline> ending;
  OfferedFigures offered(allocations, options.offer_policy());
  MetricsSources sources(
      machine, {options, clock, store, figures, *scan_timer, workers, monitor},
      {[&allocations] { return allocations.all_holdings(); },
       [&allocations](model::SnapshotPtr scanned) { return allocations.numbered(std::move(scanned)); },
       [&offered](const std::vector<holdings::Holding>& held) { return offered.all(held); },
       [&node_status] { return node_status.api_calls(); }, [&node_status] { return node_status.place(); }});
  Probes probes(options.metrics_address, clock, {&sources.page(), tls_files(options)});
  {
    plugin::Supervisor supervisor({{options.device_plugins_dir(), options.pod_resources_socket(),
                                    options.pod_resources_interval, options.offer_policy(), own_pod_name()},
                                   clock,
                                   kubelet_workers,
                                   checkpoint,
                                   {allocations, admissions, pre_start, **events, &figures},
                                   [&monitor] { monitor.rescan_now(); },
                                   [&probes, &sources](const plugin::ServingState& state) {
                                     sources.set_registered(registered_in(state));
                                     probes.turn(state);
                                   }},
                                  signals.get());
    code = to_exit_code(supervisor.run());
    ending.emplace(code);
  }
  probes.stop();
  node_status.stop();
  return end_reading(monitor,
                     {{workers, kDriverRead},
                      {cdi_workers, "a file in " + options.cdi_dir},
                      {kubelet_workers, "a call on " + options.device_plugins_dir()}},
                     code);
}

ExitCode print_once(const Options& options) {
  Workers workers;
  const auto snapshot = scan_once(options, workers);
  if (!snapshot) {
    spdlog::error("scan failed: {}", snapshot.error().message);
    return ExitCode::failed;
  }
  const core::OfferPolicy offer = options.offer_policy();
  for (const OfferLine& line : offer_lines(offer, (*snapshot)->host)) {
    if (line.warning) spdlog::warn("resources offered: {}", line.text);
  }
  const grant::NodeUnits node(*snapshot);
  for (const model::Resource resource : model::kAllResources) {
    if (!offer.serves(resource)) continue;
    const plugin::UnitList list = plugin::make_unit_list(node, resource, offer, {});
    const auto healthy = std::count_if(list.begin(), list.end(), [](const auto& unit) { return unit.healthy; });
    fmt::print("{} {} of {} allocatable\n", model::resource_name(resource), healthy, list.size());
  }
  return end_once(workers, ExitCode::ok);
}

}  // namespace neuron::agent
