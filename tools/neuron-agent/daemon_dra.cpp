#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/rpc/pod_resources.h"
#include "plugin/dra/claim/claim_preparer.h"
#include "plugin/dra/claim/claim_record.h"
#include "plugin/dra/claim/claim_status.h"
#include "plugin/dra/claim/claim_upkeep.h"
#include "plugin/dra/claim/plugin_holders.h"
#include "plugin/dra/serve/driver.h"
#include "plugin/dra/serve/node_board.h"
#include "plugin/dra/serve/reporting.h"
#include "plugin/dra/slices/publisher.h"
#include "plugin/kubelet/checkpoint.h"
#include "tools/neuron-agent/daemon.h"

namespace neuron::agent {
namespace {

namespace dra = plugin::dra;

// For the kubelet, whose working directory is another one.
std::string absolute(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(directory, error);
  return error ? directory : path.lexically_normal().string();
}

dra::ClaimPreparer::Settings claims_settings(const Options& options) {
  const dra::PoolOptions& pool = options.dra.pool;
  return {.driver = pool.driver,
          .pool = options.pool_name(),
          .grant = {options.effective_host_path_prefix(), options.core_numbering, false},
          .taint = {pool.driver + "/unhealthy", pool.taint_effect}};
}

std::string claims_directory(const Options& options) {
  return absolute(options.kubelet_dir) + "/plugins/" + options.dra.pool.driver;
}

dra::RecordStore::Options store_options(const Options& options, dra::Driver::Events& events) {
  return {.driver = options.dra.pool.driver,
          .directory = claims_directory(options),
          .cdi_directory = options.cdi_dir,
          .boot_id = dra::read_boot_id(options.root),
          .cdi_is_dead = [&events] { events.post(dra::CdiMountDead{}); },
          .grant = claims_settings(options).grant};
}

// Blocks until its deadline at most. Not in the thread of an RPC handler (agent/rpc/pod_resources.h).
Result<std::vector<model::Allocation>> list_pods(const std::string& socket) {
  constexpr std::chrono::milliseconds kDeadline{2000};
  return rpc::PodResourcesClient(socket).list(kDeadline);
}

// Allocations of device plugins in the kubelet's checkpoint; also of pods that have ended, until the kubelet is asked.
Result<plugin::Checkpoint> stored_allocations(const plugin::CheckpointSource& file) {
  auto checkpoint = file.read();
  if (!checkpoint && checkpoint.error().code == ErrorCode::not_found) return plugin::Checkpoint{};
  return checkpoint;
}

// Every part of this mode, on NodeDaemon.
class DraDaemon {
 public:
  DraDaemon(const Options& options, plugin::RootPtr machine, kube::ApiPlaces places, dra::Driver::Events& events)
      : options_(options),
        driver_(options.dra.pool.driver),
        events_(events),
        daemon_(options, std::move(machine),
                {.counted = dra::CountedClaims::counted_names(driver_), .offer = {}, .api = std::move(places)}),
        checkpoint_(options.device_plugins_dir(), daemon_.workers()),
        publisher_(daemon_.api(), {driver_, options.pool_name(), options.node_name}, daemon_.clock()),
        board_(
            {options.dra.pool, options.pool_name()}, [this](dra::Pool pool) { publisher_.set_pool(std::move(pool)); },
            health_),
        plugin_holds_({.listed = [this] { return list_pods(options_.pod_resources_socket()); },
                       .node = [this] { return board_.node(); },
                       .changed = [this] { board_.marks_changed(); },
                       .driver = driver_,
                       .stored = [this] { return stored_allocations(checkpoint_); },
                       .own_pod = plugin::own_pod_name(),
                       .asked = [this] { events_.post(dra::NodeScanned{}); }}),
        records_(store_options(options, events), [this] { return board_.node(); }),
        claims_(claims_settings(options), claims_ports(), records_, daemon_.api(), daemon_.clock()),
        claim_status_({driver_}, {[this] { return records_.held_claims(); }, [this] { return board_.node(); }},
                      daemon_.api(), daemon_.clock()),
        counted_(claims_, board_, daemon_.figures(), driver_, [this] { claim_status_.changed(); }),
        sweep_(driver_, options.pool_name(),
               {[this] { return listed(); }, [this] { return board_.node(); },
                [this](int device, int core) { return daemon_.memory_in_use(board_.node(), device, core); },
                plugin::own_pod_name()},
               records_, daemon_.api(), daemon_.clock()),
        upkeep_(records_, sweep_, {options.cdi_dir, claims_directory(options)},
                {[this](std::function<void()> job) { file_workers_.run(std::move(job)); }, daemon_.runner(),
                 [this] { board_.held_changed(); }, daemon_.clock()}) {
    board_.set_held({.devices = [this] { return records_.held_devices(); },
                     .numbering = [this] { return records_.held_numbering(); },
                     .mark =
                         [this](dra::Pool& pool, const grant::NodeUnits& node) {
                           dra::taint_held(pool, node, plugin_holds_.holders(), driver_);
                         }});
  }

  [[nodiscard]] ExitCode run(const Fd& signals) {
    std::jthread keeping([this](const std::stop_token& stop) { upkeep_.run(stop); });
    // Held devices are known before anything is published, unless the files of claims hang.
    static_cast<void>(upkeep_.await_first());
    daemon_.start(
        [this](grant::NodeUnitsPtr node) {
          board_.set_node(std::move(node));
          upkeep_.node_changed();
          plugin_holds_.scanned();
        },
        {.holdings = [this] { return holdings(dra::ClaimUsers::first); },
         .numbered = [this](model::SnapshotPtr scanned) { return board_.numbered(std::move(scanned)); },
         .by_container = [this] { return holdings(dra::ClaimUsers::each); }});
    std::jthread holding([this](const std::stop_token& stop) { plugin_holds_.run(stop); });
    std::jthread publishing([this](const std::stop_token& stop) {
      while (!plugin_holds_.await_registered(stop, publisher_.check_early()) && !stop.stop_requested()) {
      }
      if (plugin_holds_.await_first(stop)) publisher_.run(stop);
    });
    std::jthread reporting;
    if (options_.dra.claim_status) {
      reporting = std::jthread([this](const std::stop_token& stop) { claim_status_.run(stop); });
    }
    const ExitCode code = serve(signals);
    for (std::jthread* thread : {&publishing, &keeping, &holding, &reporting}) thread->request_stop();
    daemon_.close();
    for (std::jthread* thread : {&keeping, &publishing, &holding, &reporting}) {
      if (thread->joinable()) thread->join();
    }
    const std::string reads = std::string(plugin::kDriverRead) + ", a file of a claim, or a call on ";
    return daemon_.end(code, {{daemon_.workers(), reads + options_.kubelet_dir},
                              {file_workers_, "a file in " + options_.cdi_dir + " or " + claims_directory(options_)}});
  }

 private:
  [[nodiscard]] ExitCode serve(const Fd& signals) {
    dra::Driver driver({{absolute(options_.kubelet_dir), driver_, options_.dra.pod_uid},
                        daemon_.clock(),
                        events_,
                        counted_,
                        health_,
                        daemon_.workers(),
                        [this] {
                          daemon_.figures().registered(driver_);
                          plugin_holds_.registered();
                          publisher_.compare_again();
                        },
                        [this] { daemon_.rescan(); },
                        [this](const dra::DriverState& state) { turn(state); }},
                       signals.get());
    const ExitCode code = exit_code_of(driver.run());
    daemon_.begin_end(code);
    return code;
  }

  void turn(const dra::DriverState& state) {
    const dra::PublishState slices = publisher_.state();
    // TLS and JSON of many pods at once, or of all slices, take several times what stays in use.
    const bool has_written = std::exchange(writes_seen_, slices.writes) != slices.writes;
    if (counted_.take_quiet() || has_written) daemon_.trim_later();
    daemon_.turn(dra::assess_readiness(driver_, state, slices, board_.is_empty()), {{driver_, state.registered}});
  }

  [[nodiscard]] dra::ClaimPreparer::Ports claims_ports() {
    dra::ClaimPreparer::Ports ports;
    ports.node = [this] { return board_.node(); };
    ports.scan = [this] { return board_.numbered(std::make_shared<const grant::NodeUnits>(daemon_.scan_now())); };
    ports.memory_in_use = [this](int device, int core) { return daemon_.memory_in_use(board_.node(), device, core); };
    ports.run = daemon_.runner();
    ports.post = daemon_.scheduler();
    ports.plugin_holders = [this] { return plugin_holds_.known_holders(); };
    ports.pods = [this]() -> Result<dra::PodsOfClaims::PodNames> {
      TRY_ASSIGN(const auto pods, listed());
      dra::PodsOfClaims::PodNames names;
      for (const model::Allocation& one : pods) names.emplace_back(one.pod_namespace, one.pod);
      return names;
    };
    return ports;
  }

  [[nodiscard]] Result<std::vector<model::Allocation>> listed() {
    return pods_.seen(list_pods(options_.pod_resources_socket()));
  }

  [[nodiscard]] std::vector<holdings::Holding> holdings(dra::ClaimUsers users) const {
    const grant::NodeUnitsPtr node = board_.node();
    if (!node) return {};
    return dra::holdings_of(*node, records_.held_claims(), plugin_holds_.holders(), pods_.claims(), users);
  }

  const Options& options_;
  const std::string driver_;  // its name
  dra::Driver::Events& events_;
  plugin::NodeDaemon daemon_;
  Workers file_workers_;  // apart from the daemon's, so that the log at the end names those that hang
  const plugin::WatchedCheckpoint checkpoint_;
  dra::ListedClaims pods_;
  dra::HealthHub health_;
  dra::SlicePublisher publisher_;
  dra::NodeBoard board_;
  dra::PluginHoldWatch plugin_holds_;
  dra::RecordStore records_;
  dra::ClaimPreparer claims_;
  dra::ClaimStatusWriter claim_status_;
  dra::CountedClaims counted_;
  dra::ClaimSweep sweep_;
  dra::ClaimUpkeep upkeep_;
  std::uint64_t writes_seen_ = 0;  // by turn()
};

}  // namespace

ExitCode run_dra_driver(const Options& options, const Fd& signals) {
  log_start(options);
  auto root = host::FsRoot::open(options.root);
  auto events = dra::Driver::Events::open();
  auto places = kube::api_places(options.api, kube::in_cluster_places());
  if (!root || !events || !places) {
    spdlog::error("start failed: {}", !root     ? root.error().message
                                      : !events ? events.error().message
                                                : places.error().message);
    return ExitCode::failed;
  }
  DraDaemon daemon(options, std::make_shared<const host::FsRoot>(*std::move(root)), *std::move(places), **events);
  return daemon.run(signals);
}

ExitCode print_slices_once(const Options& options) {
  Workers workers;
  const model::SnapshotPtr snapshot = scan_for_once(options, workers);
  if (!snapshot) return ExitCode::failed;
  const dra::Pool pool = dra::make_pool(grant::NodeUnits(snapshot), options.dra.pool, {});
  const dra::PoolIdentity identity{options.dra.pool.driver, options.pool_name(), {options.node_name, ""}};
  const dra::Layout layout = dra::lay_out(pool, options.dra.layout);
  for (const std::string& what : layout.left_out) spdlog::warn("left out of slices: {}", what);
  fmt::print("{}", dra::published_text(layout, identity));
  return plugin::end_once(workers, ExitCode::ok);
}

}  // namespace neuron::agent
