#include "tools/neuron-agent/daemon.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "agent/base/workers.h"
#include "plugin/device/kubelet_port.h"
#include "plugin/device/serving_state.h"
#include "plugin/device/supervisor.h"
#include "plugin/kubelet/cdi_files.h"
#include "plugin/kubelet/checkpoint.h"
#include "plugin/kubelet/process.h"
#include "plugin/placement/placement_watch.h"

namespace neuron::agent {
namespace {

grant::GrantOptions response_options(const Options& options) {
  return {options.effective_host_path_prefix(), options.core_numbering, options.cdi};
}

// Of --node-status and --honor-placement; nullopt: both are off, or not possible, which is logged.
std::optional<kube::ApiPlaces> api_places(const Options& options) {
  if (!options.node_status.enabled && !options.honor_placement) return std::nullopt;
  auto places = kube::api_places(options.api, kube::in_cluster_places());
  if (places) return *std::move(places);
  if (options.node_status.enabled) spdlog::error("node status not updated: {}", places.error().message);
  if (options.honor_placement) spdlog::error("placements not honored: {}", places.error().message);
  return std::nullopt;
}

// Of --honor-placement, with a thread of its own. Without an API server it does nothing.
class Placements {
 public:
  Placements(const Options& options, bool has_api, plugin::NodeDaemon& daemon) {
    if (!options.honor_placement || !has_api) return;
    watch_.emplace(daemon.api(), options.node_name, daemon.scheduler(), daemon.clock());
    thread_ = std::jthread([this](const std::stop_token& stop) { watch_->run(stop); });
  }
  [[nodiscard]] plugin::PlacementBook* book() { return watch_ ? &watch_->book() : nullptr; }
  void request_stop() { thread_.request_stop(); }

 private:
  std::optional<plugin::PlacementWatch> watch_;
  std::jthread thread_;
};

// Not in a pod, whose List shows when it is whole, and the kubelet may have prepared claims, or that is not known in
// time.
bool claims_expected(const std::string& kubelet_dir, Workers& workers) {
  constexpr std::chrono::milliseconds kBudget{1000};
  if (!plugin::own_pod_name().empty()) return false;
  const BoundedCalls calls(workers);
  return calls.run([kubelet_dir] { return plugin::may_hold_claims(kubelet_dir); }, kBudget).value_or(true);
}

}  // namespace

void log_start(const Options& options) {
  std::string line;
  for (const std::string& option : describe(options)) line += " " + option;
  spdlog::info("starting{}", line);
  if (!options.node_groups.empty() && options.mode == Mode::device_plugin) {
    spdlog::info("node group selected group={} file={}; a changed file applies from the next start",
                 options.node_group.empty() ? "none of them" : '"' + options.node_group + '"', options.node_groups);
  }
  for (const std::string& doubt : options.doubts) spdlog::warn("configuration warning: {}", doubt);
}

ExitCode run_device_plugin(const Options& options, const Fd& signals) {
  log_start(options);
  auto root = host::FsRoot::open(options.root);
  auto events = plugin::EventQueue::open();
  if (!root || !events) {
    spdlog::error("start failed: {}", !root ? root.error().message : events.error().message);
    return ExitCode::failed;
  }
  plugin::EventQueue& queue = **events;
  const core::OfferPolicy offer = options.offer_policy();
  std::optional<kube::ApiPlaces> api = api_places(options);
  const bool has_api = api.has_value();
  plugin::NodeDaemon daemon(options, std::make_shared<const host::FsRoot>(*std::move(root)),
                            {plugin::DevicePluginService::counted_names(offer), offer, std::move(api)});
  const Clock& clock = daemon.clock();
  Workers cdi_workers;      // apart from the daemon's, so that the log at the end names those that hang
  Workers kubelet_workers;  // likewise
  const plugin::WatchedCheckpoint checkpoint(options.device_plugins_dir(), daemon.workers(),
                                             [&queue] { queue.post(plugin::CheckpointCameBack{}); });
  const auto version = [&checkpoint] { return checkpoint.version(); };
  plugin::Allocations allocations(response_options(options), version, clock, offer, options.dra.pool.driver);
  plugin::AdmissionGate admissions(clock, version, [&queue] { queue.post(plugin::AdmissionsChanged{}); });
  const auto show = [&allocations, &queue](grant::NodeUnitsPtr node) {
    allocations.set_node(std::move(node));
    queue.post(plugin::SnapshotChanged{});
  };
  const auto cdi_specs =
      !options.cdi ? nullptr
                   : std::make_shared<plugin::CdiSpecs>(
                         plugin::CdiSpecs::Settings{options.cdi_dir, response_options(options), options.scan_interval},
                         plugin::CdiSpecs::Ports{
                             [&cdi_workers](plugin::CdiSpecs::Job job) { cdi_workers.run(std::move(job)); },
                             daemon.scheduler(), show, [&queue] { queue.post(plugin::CdiMountDead{}); }, clock});
  plugin::PreStartGate pre_start(
      allocations,
      [&daemon, &allocations](int device, int core) { return daemon.memory_in_use(allocations.node(), device, core); },
      daemon.runner(), daemon.scheduler(), clock);
  plugin::OfferedFigures offered(allocations, offer);
  daemon.start(
      [&cdi_specs, &show](grant::NodeUnitsPtr node) {
        cdi_specs ? cdi_specs->set_node(std::move(node)) : show(std::move(node));
      },
      {.holdings = [&allocations] { return allocations.all_holdings(); },
       .numbered = [&allocations](model::SnapshotPtr scanned) { return allocations.numbered(std::move(scanned)); },
       .offered = [&offered](const std::vector<holdings::Holding>& held) { return offered.all(held); }});

  Placements placements(options, has_api, daemon);
  ExitCode code = ExitCode::failed;
  {
    using WhenServed = plugin::KubeletDirectory::WhenServed;
    plugin::Supervisor supervisor(
        {{options.device_plugins_dir(), options.pod_resources_socket(), options.pod_resources_interval, offer,
          plugin::own_pod_name(), options.take_over ? WhenServed::wait : WhenServed::end,
          claims_expected(options.kubelet_dir, kubelet_workers)},
         clock,
         kubelet_workers,
         checkpoint,
         {allocations, admissions, pre_start, queue, &daemon.figures(), placements.book()},
         [&daemon] { daemon.rescan(); },
         [&daemon](const plugin::ServingState& state) {
           daemon.turn(assess_readiness(state), registered_resources(state));
         }},
        signals.get());
    code = exit_code_of(supervisor.run());
    daemon.begin_end(code);
  }
  placements.request_stop();
  return daemon.end(code, {{daemon.workers(), plugin::kDriverRead},
                           {cdi_workers, "a file in " + options.cdi_dir},
                           {kubelet_workers, "a call on " + options.device_plugins_dir()}});
}

model::SnapshotPtr scan_for_once(const Options& options, Workers& workers) {
  const auto snapshot = plugin::scan_once(options.root, options.kernel_log, workers);
  if (!snapshot) {
    spdlog::error("scan failed: {}", snapshot.error().message);
    return nullptr;
  }
  for (const std::string& doubt : options.doubts) spdlog::warn("configuration warning: {}", doubt);
  return *snapshot;
}

ExitCode print_resources_once(const Options& options) {
  Workers workers;
  const model::SnapshotPtr snapshot = scan_for_once(options, workers);
  if (!snapshot) return ExitCode::failed;
  const core::OfferPolicy offer = options.offer_policy();
  for (const plugin::OfferLine& line : plugin::offer_lines(offer, snapshot->host)) {
    if (line.warning) spdlog::warn("resources offered: {}", line.text);
  }
  const grant::NodeUnits node(snapshot);
  for (const model::Resource resource : model::kAllResources) {
    if (!offer.serves(resource)) continue;
    const plugin::UnitList list = plugin::make_unit_list(node, resource, offer, {});
    const auto healthy = std::ranges::count_if(list, [](const auto& unit) { return unit.healthy; });
    fmt::print("{} {} of {} allocatable\n", model::resource_name(resource), healthy, list.size());
  }
  return plugin::end_once(workers, ExitCode::ok);
}

}  // namespace neuron::agent
