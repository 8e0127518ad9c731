#include "tools/neuron-agent/daemon_parts.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "agent/health/assess.h"
#include "agent/host/scanner.h"
#include "tools/neuron-agent/inventory_log.h"

namespace neuron::agent {

void log_start(const Options& options) {
  std::string line;
  for (const std::string& option : describe(options)) line += " " + option;
  spdlog::info("starting{}", line);
  if (!options.node_groups.empty() && options.mode == Mode::device_plugin) {
    spdlog::info("node groups: {} applies; a change of {} counts from the next start",
                 options.node_group.empty() ? "none of them" : '"' + options.node_group + '"', options.node_groups);
  }
  for (const std::string& doubt : options.doubts) spdlog::warn("{}", doubt);
}

monitor::WatchedScan::Scan make_scan(const RootPtr& root, const std::shared_ptr<ScanTimer>& timer,
                                     host::KernelLogUse kernel_log) {
  struct Machine {
    RootPtr root;
    host::Scanner scanner;
    Machine(RootPtr opened, host::KernelLogUse use) : root(std::move(opened)), scanner(*root, {.kernel_log = use}) {}
  };
  return [machine = std::make_shared<Machine>(root, kernel_log), timer](const host::MayRead& may_read) {
    const auto begun = std::chrono::steady_clock::now();
    model::HostScan scan = machine->scanner.scan(may_read);
    timer->note(std::chrono::steady_clock::now() - begun);
    return scan;
  };
}

std::optional<metrics::TlsFiles> tls_files(const Options& options) {
  if (options.metrics_tls_cert.empty()) return std::nullopt;
  return metrics::TlsFiles{options.metrics_tls_cert, options.metrics_tls_key};
}

model::SnapshotPtr scan_now(const host::FsRoot& root, host::KernelLogUse kernel_log) {
  host::Scanner scanner(root, {.kernel_log = kernel_log});
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = snapshot->generation = 1;
  health::AssessMemory memory;
  snapshot->host = health::assess(scanner.scan(), memory, std::chrono::steady_clock::now()).host;
  return snapshot;
}

Result<model::SnapshotPtr> scan_once(const Options& options) {
  TRY_ASSIGN(const auto root, host::FsRoot::open(options.root));
  auto snapshot = scan_now(root, options.kernel_log);
  log_missing(snapshot->host);
  log_problems(snapshot->host);
  for (const std::string& doubt : options.doubts) spdlog::warn("{}", doubt);
  return snapshot;
}

ExitCode end_reading(monitor::Monitor& monitor, Workers& workers, ExitCode code) {
  constexpr std::chrono::milliseconds kStopTimeout{500};
  if (!monitor.stop(kStopTimeout) || !workers.stop(kStopTimeout)) {
    spdlog::warn("a read hangs inside the driver; leaving it behind");
    spdlog::shutdown();
    ::_exit(static_cast<int>(code));
  }
  spdlog::info("stopped");
  return code;
}

}  // namespace neuron::agent
