#include "tools/neuron-agent/daemon_dra.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "agent/kube/api_client.h"
#include "agent/monitor/monitor.h"
#include "plugin/dra/driver.h"
#include "plugin/dra/health_list.h"
#include "plugin/dra/pool.h"
#include "plugin/dra/slice_layout.h"
#include "plugin/dra/slice_sync.h"
#include "plugin/dra/slice_text.h"
#include "tools/neuron-agent/daemon_parts.h"
#include "tools/neuron-agent/inventory_log.h"
#include "tools/neuron-agent/probes.h"

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

std::string pool_name(const Options& options) {
  return options.dra.pool_name.empty() ? options.node_name : options.dra.pool_name;
}

// The kubelet is told where claims are served, and has another working directory.
std::string absolute(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(directory, error);
  return error ? directory : path.lexically_normal().string();
}

// Until claims can be prepared.
class NoClaims final : public dra::ClaimPort {
 public:
  std::map<std::string, dra::PrepareAnswer> prepare(const std::vector<dra::ClaimRef>& claims,
                                                    const std::stop_token& /*stop*/) override {
    std::map<std::string, dra::PrepareAnswer> answers;
    for (const auto& claim : claims) answers[claim.uid].error = "this version prepares no claims";
    return answers;
  }
  std::map<std::string, std::string> unprepare(const std::vector<dra::ClaimRef>& claims) override {
    std::map<std::string, std::string> answers;
    for (const auto& claim : claims) answers[claim.uid] = "";
    return answers;
  }
};

plugin::Readiness readiness_of(const std::string& driver, const dra::DriverState& state) {
  const std::string problem = state.problem.empty() ? "waiting for the kubelet" : state.problem;
  return {state.registered, driver + ": " + (state.registered ? "registered" : problem) + "\n"};
}

}  // namespace

ExitCode run_dra_daemon(const Options& options, const Fd& signals) {
  log_start(options);
  auto root = host::FsRoot::open(options.root);
  auto events = dra::Driver::Events::open();
  auto places = kube::api_places(options.dra.api, kube::in_cluster_places());
  for (const Error* error :
       {root ? nullptr : &root.error(), events ? nullptr : &events.error(), places ? nullptr : &places.error()}) {
    if (error == nullptr) continue;
    spdlog::error("{}", error->message);
    return ExitCode::failed;
  }
  const RootPtr machine = std::make_shared<const host::FsRoot>(*std::move(root));
  const SystemClock clock;
  monitor::SnapshotStore store;
  dra::HealthHub health;
  NoClaims claims;
  Workers workers;
  monitor::Monitor monitor(
      store, workers, [machine] { return make_scan(machine); },
      [&options, &health, log = InventoryLog(std::nullopt)](const model::SnapshotPtr& snapshot) mutable {
        log(snapshot);
        const grant::NodeUnits node(snapshot);
        const dra::Pool pool = dra::make_pool(node, options.dra.pool, {});
        health.publish(std::make_shared<const dra::HealthList>(dra::make_health_list(pool, node, pool_name(options))));
      },
      {.interval = options.scan_interval});
  monitor.start();

  ExitCode code = ExitCode::failed;
  Probes probes(options.metrics_address, clock);
  {
    dra::Driver driver(
        {{absolute(options.kubelet_dir), options.dra.pool.driver, options.dra.pod_uid},
         clock,
         **events,
         claims,
         health,
         [&workers](std::function<void()> job) { workers.run(std::move(job)); },
         [] {},
         [&monitor] { monitor.rescan_now(); },
         [&](const dra::DriverState& state) { probes.turn(readiness_of(options.dra.pool.driver, state)); }},
        signals.get());
    code = to_exit_code(driver.run());
  }
  probes.stop();
  return end_reading(monitor, workers, code);
}

ExitCode print_slices_once(const Options& options) {
  const auto snapshot = scan_once(options);
  if (!snapshot) {
    spdlog::error("{}", snapshot.error().message);
    return ExitCode::failed;
  }
  const dra::Pool pool = dra::make_pool(grant::NodeUnits(*snapshot), options.dra.pool, {});
  const dra::Layout layout = dra::lay_out(pool, {});  // as the newest servers take it
  for (const std::string& left_out : layout.left_out) spdlog::warn("{}", left_out);
  const dra::PoolIdentity identity{options.dra.pool.driver, pool_name(options), {options.node_name, ""}};
  fmt::print("{}", dra::slice_list_json(dra::whole_slices(layout.slices, identity)));
  return ExitCode::ok;
}

}  // namespace neuron::agent
