#include "tools/neuron-agent/daemon_dra.h"

#include <fmt/format.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/host/neuron_sysfs.h"
#include "agent/kube/api_client.h"
#include "agent/monitor/monitor.h"
#include "agent/rpc/pod_resources.h"
#include "plugin/dra/claim/claim_preparer.h"
#include "plugin/dra/claim/claim_upkeep.h"
#include "plugin/dra/claim/plugin_holders.h"
#include "plugin/dra/claim/record_store.h"
#include "plugin/dra/serve/driver.h"
#include "plugin/dra/serve/node_board.h"
#include "plugin/dra/slices/publisher.h"
#include "plugin/dra/slices/slice_sync.h"
#include "plugin/kubelet/call_figures.h"
#include "plugin/kubelet/watched_checkpoint.h"
#include "tools/neuron-agent/claim_holdings.h"
#include "tools/neuron-agent/counted_api.h"
#include "tools/neuron-agent/daemon_parts.h"
#include "tools/neuron-agent/inventory_log.h"
#include "tools/neuron-agent/metrics_sources.h"
#include "tools/neuron-agent/node_place.h"
#include "tools/neuron-agent/node_status.h"
#include "tools/neuron-agent/probes.h"
#include "tools/neuron-agent/told_claims.h"

namespace neuron::agent {
namespace {

namespace dra = plugin::dra;

ExitCode to_exit_code(dra::Driver::Outcome outcome) {
  switch (outcome) {
    case dra::Driver::Outcome::stopped:
      return ExitCode::ok;
    case dra::Driver::Outcome::other_agent:
      return ExitCode::other_agent;
    case dra::Driver::Outcome::dead_mount:
      return ExitCode::dead_mount;
    case dra::Driver::Outcome::failed:
      break;
  }
  return ExitCode::failed;
}

// The kubelet gets the path of the socket, and has another working directory.
std::string absolute(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(directory, error);
  return error ? directory : path.lexically_normal().string();
}

std::string pool_name(const Options& options) {
  return options.dra.pool_name.empty() ? options.node_name : options.dra.pool_name;
}

dra::ClaimPreparer::Settings claims_settings(const Options& options) {
  const dra::PoolOptions& pool = options.dra.pool;
  return {.driver = pool.driver,
          .pool = pool_name(options),
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

// May block for as long as its deadline. Not in an RPC handler's own thread (agent/rpc/pod_resources.h).
Result<std::vector<model::Allocation>> list_pods(const std::string& socket) {
  constexpr std::chrono::milliseconds kDeadline{2000};
  return rpc::PodResourcesClient(socket).list(kDeadline);
}

// What the kubelet's checkpoint has of device plugins: also of pods that have ended, until the kubelet is asked.
Result<std::vector<model::Allocation>> stored_allocations(const plugin::CheckpointSource& file) {
  auto checkpoint = file.read();
  if (checkpoint) return std::move(checkpoint->allocations);
  if (checkpoint.error().code == ErrorCode::not_found) return std::vector<model::Allocation>{};
  return fail(checkpoint.error());
}

std::string slices_line(const dra::PublishState& state, bool nothing_to_publish) {
  if (nothing_to_publish && state.published) return "slices: nothing to publish on this node\n";
  std::string line = state.published ? fmt::format("slices: {} with {} devices", state.slices, state.devices)
                                     : std::string("slices: not published yet");
  if (!state.error.empty()) line += ": " + state.error;
  return line + "\n";
}

plugin::Readiness readiness_of(const Options& options, const dra::DriverState& driver, const dra::PublishState& slices,
                               bool nothing_to_publish) {
  const std::string problem = driver.problem.empty() ? "waiting for the kubelet" : driver.problem;
  return {driver.registered && slices.published,
          fmt::format("driver {}: {}\n", options.dra.pool.driver, driver.registered ? "registered" : problem) +
              slices_line(slices, nothing_to_publish)};
}

// Every real thing of this mode, in the order in which they depend on each other.
class DraDaemon {
 public:
  DraDaemon(const Options& options, RootPtr machine, kube::ApiPlaces places, dra::Driver::Events& events)
      : options_(options),
        machine_(std::move(machine)),
        server_(std::move(places)),
        events_(events),
        publisher_(api_, {options.dra.pool.driver, pool_name(options), options.node_name}, clock_),
        board_({options.dra.pool, pool_name(options)},
               {[this] { return claim_store_.held_devices(); },
                [this](dra::Pool pool) { publisher_.set_pool(std::move(pool)); }, health_,
                [this](dra::Pool& pool, const grant::NodeUnits& node) {
                  dra::taint_held(pool, node, plugin_holds_.holders(), options_.dra.pool.driver);
                },
                [this] { return claim_store_.held_numbering(); }}),
        monitor_(store_, workers_, scan_maker(machine_, scan_timer_, options_.kernel_log),
                 [this, log = InventoryLog(std::nullopt)](const model::SnapshotPtr& snapshot) mutable {
                   log(snapshot);
                   node_status_.set(snapshot);
                   board_.set_node(std::make_shared<const grant::NodeUnits>(snapshot));
                   upkeep_.node_changed();
                   events_.post(dra::NodeScanned{});
                 },
                 {.interval = options.scan_interval}),
        claim_store_(store_options(options, events), [this] { return board_.node(); }),
        claims_(claims_settings(options), claims_ports(), claim_store_, api_, clock_),
        sweep_(options.dra.pool.driver, pool_name(options), sweep_ports(), claim_store_, api_, clock_),
        upkeep_(claim_store_, sweep_, {options.cdi_dir, claims_directory(options)},
                {[this](std::function<void()> job) { file_workers_.run(std::move(job)); }, runner(),
                 [this] { board_.held_changed(); }, clock_}) {}

  [[nodiscard]] ExitCode run(const Fd& signals) {
    std::jthread keeping([this](const std::stop_token& stop) { upkeep_.run(stop); });
    // What claims hold is known before anything is published, unless their files hang.
    static_cast<void>(upkeep_.await_first());
    monitor_.start();
    ToldClaims claims(claims_, board_, figures_, options_.dra.pool.driver);
    std::jthread holding([this](const std::stop_token& stop) { plugin_holds_.run(stop); });
    std::jthread publishing([this](const std::stop_token& stop) {
      if (plugin_holds_.await_first(stop)) publisher_.run(stop);
    });
    MetricsSources sources(machine_, {options_, clock_, store_, figures_, *scan_timer_, workers_, monitor_},
                           {[this] { return holdings(); },
                            [this](model::SnapshotPtr scanned) { return board_.numbered(std::move(scanned)); },
                            {},
                            [this] { return counted_.counts(); },
                            [this] { return api_.place(); }});
    Probes probes(options_.metrics_address, clock_, {&sources.page(), tls_files(options_)});
    const ExitCode code = serve(claims, probes, sources, signals);
    probes.stop();
    publishing.request_stop();
    keeping.request_stop();
    holding.request_stop();
    server_.close();
    node_status_.stop();
    keeping.join();
    publishing.join();
    holding.join();
    return end_reading(monitor_,
                       {{workers_, "a read inside the driver, a file of a claim, or a call on " + options_.kubelet_dir},
                        {file_workers_, "a file in " + options_.cdi_dir + " or " + claims_directory(options_)}},
                       code);
  }

 private:
  [[nodiscard]] ExitCode serve(ToldClaims& claims, Probes& probes, MetricsSources& sources, const Fd& signals) {
    dra::Driver driver({{absolute(options_.kubelet_dir), options_.dra.pool.driver, options_.dra.pod_uid},
                        clock_,
                        events_,
                        claims,
                        health_,
                        workers_,
                        [this] {
                          figures_.registered(options_.dra.pool.driver);
                          plugin_holds_.registered();
                          publisher_.compare_again();
                        },
                        [this] { monitor_.rescan_now(); },
                        [this, &claims, &probes, &sources](const dra::DriverState& state) {
                          give_memory_back(claims);
                          sources.set_registered({{options_.dra.pool.driver, state.registered}});
                          if (probes.wanted()) {
                            probes.turn(readiness_of(options_, state, publisher_.state(), board_.is_empty()));
                          }
                        }},
                       signals.get());
    const ExitCode code = to_exit_code(driver.run());
    ending_.emplace(code);
    return code;
  }

  // TLS and JSON of many pods at once, or of all slices, are several times what is in use afterwards. Not before the
  // threads have ended that answered them (Workers::kIdle).
  void give_memory_back(ToldClaims& claims) {
    constexpr std::chrono::seconds kAfter{4};
    const std::uint64_t writes = std::exchange(writes_seen_, publisher_.state().writes);
    if (claims.take_quiet() || writes != writes_seen_) trim_at_ = clock_.now() + kAfter;
    if (!trim_at_ || clock_.now() < *trim_at_) return;
    trim_at_.reset();
    ::malloc_trim(0);
  }

  [[nodiscard]] std::function<void(std::function<void()>)> runner() {
    return [this](std::function<void()> job) { workers_.run(std::move(job)); };
  }

  [[nodiscard]] dra::ClaimPreparer::Ports claims_ports() {
    dra::ClaimPreparer::Ports ports;
    ports.node = [this] { return board_.node(); };
    ports.scan = [this, machine = machine_, use = options_.kernel_log] {
      return board_.numbered(std::make_shared<const grant::NodeUnits>(scan_now(*machine, use)));
    };
    ports.memory_in_use = [this](int device, int core) { return memory_in_use(device, core); };
    ports.run = runner();
    ports.post = [this](SteadyTime when, std::function<void()> job) { monitor_.post(when, std::move(job)); };
    ports.plugin_holders = [this] { return plugin_holds_.holders(); };
    ports.pods = [this, socket = options_.pod_resources_socket()]() -> Result<dra::PodsOfClaims::PodNames> {
      TRY_ASSIGN(const auto listed, pods_.seen(list_pods(socket)));
      dra::PodsOfClaims::PodNames names;
      for (const model::Allocation& one : listed) names.emplace_back(one.pod_namespace, one.pod);
      return names;
    };
    return ports;
  }

  [[nodiscard]] dra::ClaimSweep::Ports sweep_ports() {
    return {[this, socket = options_.pod_resources_socket()] { return pods_.seen(list_pods(socket)); },
            [this] { return board_.node(); }, [this](int device, int core) { return memory_in_use(device, core); }};
  }

  [[nodiscard]] std::optional<std::uint64_t> memory_in_use(int device, int core) const {
    const grant::NodeUnitsPtr node = board_.node();
    const model::NeuronDevice* known = node ? node->device(device) : nullptr;
    return host::process_memory_of_core(*machine_, device, core, known != nullptr ? known->memory_bytes : std::nullopt);
  }

  [[nodiscard]] std::vector<holdings::Holding> holdings() const {
    const grant::NodeUnitsPtr node = board_.node();
    if (!node) return {};
    return holdings_of(*node, claim_store_.held_claims(), plugin_holds_.holders(), pods_.claims());
  }

  const Options& options_;
  const RootPtr machine_;
  const SystemClock clock_;
  plugin::CallFigures figures_{ToldClaims::counted_names(options_.dra.pool.driver)};
  const std::shared_ptr<ScanTimer> scan_timer_ = std::make_shared<ScanTimer>();
  ListedClaims pods_;
  kube::ApiClient server_;
  CountedApi counted_{server_};
  NodePlaceApi api_{counted_, options_.node_name};
  NodeStatus node_status_{options_, clock_, &api_};
  dra::Driver::Events& events_;
  dra::HealthHub health_;
  dra::SlicePublisher publisher_;
  dra::NodeBoard board_;
  dra::PluginHoldWatch plugin_holds_{{.listed = [this] { return list_pods(options_.pod_resources_socket()); },
                                      .node = [this] { return board_.node(); },
                                      .changed = [this] { board_.marks_changed(); },
                                      .driver = options_.dra.pool.driver,
                                      .stored = [this] { return stored_allocations(checkpoint_); },
                                      .own_pod = own_pod_name()}};
  monitor::SnapshotStore store_;
  Workers workers_;
  Workers file_workers_;  // apart, so that the end of the program says which of them hangs
  plugin::WatchedCheckpoint checkpoint_{options_.device_plugins_dir(), workers_};
  monitor::Monitor monitor_;
  dra::RecordStore claim_store_;
  dra::ClaimPreparer claims_;
  dra::ClaimSweep sweep_;
  dra::ClaimUpkeep upkeep_;
  std::uint64_t writes_seen_ = 0;  // with trim_at_ of the loop
  std::optional<SteadyTime> trim_at_;
  std::optional<EndDeadline> ending_;
};

}  // namespace

ExitCode run_dra_daemon(const Options& options, const Fd& signals) {
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
  const auto snapshot = scan_once(options, workers);
  if (!snapshot) {
    spdlog::error("scan failed: {}", snapshot.error().message);
    return ExitCode::failed;
  }
  const dra::Pool pool = dra::make_pool(grant::NodeUnits(*snapshot), options.dra.pool, {});
  const dra::PoolIdentity identity{options.dra.pool.driver, pool_name(options), {options.node_name, ""}};
  const dra::Layout layout = dra::lay_out(pool, options.dra.layout);
  for (const std::string& what : layout.left_out) spdlog::warn("left out of slices: {}", what);
  fmt::print("{}", dra::published_text(layout, identity));
  return end_once(workers, ExitCode::ok);
}

}  // namespace neuron::agent
