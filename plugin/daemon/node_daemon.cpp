#include "plugin/daemon/node_daemon.h"

#include <malloc.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "agent/kube/limits.h"

namespace neuron::plugin {
namespace {

// Ends the process without destructors, since threads that hang use what they would free.
[[noreturn]] void leave(ExitCode code) {
  spdlog::shutdown();
  ::_exit(static_cast<int>(code));
}

std::optional<metrics::TlsFiles> tls_files(const DaemonSettings& settings) {
  if (settings.metrics_tls_cert.empty()) return std::nullopt;
  return metrics::TlsFiles{settings.metrics_tls_cert, settings.metrics_tls_key};
}

}  // namespace

EndDeadline::EndDeadline(ExitCode code, std::chrono::milliseconds patience)
    : thread_([code, patience](const std::stop_token& stop) {
        kube::wait_for(patience, stop);
        if (stop.stop_requested()) return;
        spdlog::warn("thread blocked at exit, abandoned: the shutdown has not finished within {} ms", patience.count());
        leave(code);
      }) {}

NodeDaemon::NodeDaemon(const DaemonSettings& settings, RootPtr machine, Mode mode)
    : settings_(settings),
      machine_(std::move(machine)),
      figures_(mode.counted),
      log_(std::move(mode.offer)),
      monitor_(store_, workers_, scan_maker(machine_, scan_timer_, settings.kernel_log),
               [this](const model::SnapshotPtr& snapshot) { publish(snapshot); },
               {.interval = settings.scan_interval}) {
  if (!mode.api) return;
  client_.emplace(*std::move(mode.api));
  api_.emplace(*client_, settings.node_name);
  if (!settings.node_status.enabled) return;
  status_.emplace(*api_,
                  status::StatusWriter::Settings{.node = settings.node_name,
                                                 .report = settings.node_status.report,
                                                 .startup_taint = settings.node_status.startup_taint},
                  clock_);
  status_thread_ = std::jthread([this](const std::stop_token& stop) { status_->run(stop); });
}

std::function<void(std::function<void()>)> NodeDaemon::runner() {
  return [this](std::function<void()> job) { workers_.run(std::move(job)); };
}

std::function<void(SteadyTime, std::function<void()>)> NodeDaemon::scheduler() {
  return [this](SteadyTime when, std::function<void()> job) { monitor_.post(when, std::move(job)); };
}

std::optional<std::uint64_t> NodeDaemon::memory_in_use(const grant::NodeUnitsPtr& node, int device, int core) const {
  return plugin::memory_in_use(*machine_, node, device, core);
}

model::SnapshotPtr NodeDaemon::scan_now() const {
  return plugin::scan_now(*machine_, settings_.kernel_log);
}

void NodeDaemon::publish(const model::SnapshotPtr& snapshot) {
  log_.log(snapshot);
  if (status_) status_->set(snapshot);
  on_node_(std::make_shared<const grant::NodeUnits>(snapshot));
}

void NodeDaemon::start(OnNode on_node, MetricsSources::Ports metrics) {
  on_node_ = std::move(on_node);
  monitor_.start();
  sources_.emplace(machine_,
                   MetricsSources::Parts{settings_.node_name, settings_.scan_interval, clock_, store_, figures_,
                                         *scan_timer_, workers_, monitor_, api_ ? &*api_ : nullptr},
                   std::move(metrics));
  const metrics::Pages pages{&sources_->page(), settings_.node_document ? &sources_->node_page() : nullptr};
  probes_.emplace(settings_.metrics_address, clock_, pages, tls_files(settings_));
}

void NodeDaemon::turn(const metrics::Readiness& readiness, std::map<std::string, bool> registered) {
  note_offered(readiness, registered);
  sources_->set_registered(std::move(registered));
  probes_->turn(readiness);
  if (!trim_at_ || clock_.now() < *trim_at_) return;
  trim_at_.reset();
  ::malloc_trim(0);
}

void NodeDaemon::note_offered(const metrics::Readiness& readiness, const std::map<std::string, bool>& registered) {
  if (!status_ || is_offered_ || !readiness.ready) return;
  const model::SnapshotPtr newest = store_.newest();
  if (!newest || !status::is_offered(newest->host, registered)) return;
  is_offered_ = true;
  std::vector<std::string> names;
  for (const auto& one : registered) names.push_back(one.first);
  status_->set_registered(std::move(names));
}

void NodeDaemon::trim_later() {
  constexpr std::chrono::seconds kAfter{12};  // the threads of a burst have ended, and with them their caches
  trim_at_ = clock_.now() + kAfter;
}

void NodeDaemon::close() {
  if (probes_) probes_->stop();
  status_thread_.request_stop();
  if (client_) client_->close();
  if (status_thread_.joinable()) status_thread_.join();
}

ExitCode NodeDaemon::end(ExitCode code, const std::vector<MayHang>& workers) {
  constexpr std::chrono::milliseconds kStopTimeout{500};
  close();
  bool is_left_behind = !monitor_.stop(kStopTimeout);
  for (const MayHang& one : workers) {
    if (one.workers.stop(kStopTimeout)) continue;
    spdlog::warn("thread blocked at exit, abandoned: {}", one.what);
    is_left_behind = true;
  }
  if (is_left_behind) leave(code);
  spdlog::info("stopped");
  return code;
}

ExitCode end_once(Workers& workers, ExitCode code) {
  constexpr std::chrono::milliseconds kStopTimeout{300};
  if (workers.stop(kStopTimeout)) return code;
  std::fflush(stdout);
  leave(code);
}

}  // namespace neuron::plugin
