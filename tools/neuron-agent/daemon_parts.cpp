#include "tools/neuron-agent/daemon_parts.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "agent/health/assess.h"
#include "agent/host/scanner.h"
#include "tools/neuron-agent/inventory_log.h"

namespace neuron::agent {

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

std::string own_pod_name() {
  if (::getenv("KUBERNETES_SERVICE_HOST") == nullptr) return "";
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

monitor::WatchedScan::MakeScan scan_maker(const RootPtr& root, const std::shared_ptr<ScanTimer>& timer,
                                          host::KernelLogUse kernel_log) {
  struct Machine {
    RootPtr root;
    host::Scanner scanner;
    Machine(RootPtr opened, host::KernelLogUse use, std::shared_ptr<host::LastSeen> last)
        : root(std::move(opened)), scanner(*root, {.kernel_log = use}, std::move(last)) {}
  };
  return [root, timer, kernel_log, last = std::make_shared<host::LastSeen>()] {
    return [machine = std::make_shared<Machine>(root, kernel_log, last), timer](const model::MayRead& may_read) {
      const auto begun = std::chrono::steady_clock::now();
      model::HostScan scan = machine->scanner.scan(may_read);
      timer->note(std::chrono::steady_clock::now() - begun);
      return scan;
    };
  };
}

std::optional<metrics::TlsFiles> tls_files(const Options& options) {
  if (options.metrics_tls_cert.empty()) return std::nullopt;
  return metrics::TlsFiles{options.metrics_tls_cert, options.metrics_tls_key};
}

namespace {

model::SnapshotPtr assessed(model::HostScan scan) {
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = snapshot->generation = 1;
  health::AssessMemory memory;
  snapshot->host = health::assess(std::move(scan), memory, std::chrono::steady_clock::now()).host;
  return snapshot;
}

}  // namespace

model::SnapshotPtr scan_now(const host::FsRoot& root, host::KernelLogUse kernel_log) {
  host::Scanner scanner(root, {.kernel_log = kernel_log});
  return assessed(scanner.scan());
}

Result<model::SnapshotPtr> scan_once(const Options& options, Workers& workers) {
  TRY_ASSIGN(auto opened, host::FsRoot::open(options.root));
  const RootPtr root = std::make_shared<const host::FsRoot>(std::move(opened));
  monitor::BoundedScans scans(workers, scan_maker(root, std::make_shared<ScanTimer>(), options.kernel_log));
  const auto snapshot = assessed(scans.scan());
  for (const model::Unanswered& one : snapshot->host.unanswered) {
    spdlog::warn("scan incomplete, values left out: {} has not returned since {}", to_string(one.part), one.since);
  }
  log_missing(snapshot->host);
  log_problems(snapshot->host);
  for (const std::string& doubt : options.doubts) spdlog::warn("configuration warning: {}", doubt);
  return snapshot;
}

ExitCode end_once(Workers& workers, ExitCode code) {
  constexpr std::chrono::milliseconds kStopTimeout{300};
  if (workers.stop(kStopTimeout)) return code;
  std::fflush(stdout);
  spdlog::shutdown();
  ::_exit(static_cast<int>(code));
}

EndDeadline::EndDeadline(ExitCode code, std::chrono::milliseconds patience)
    : thread_([code, patience](const std::stop_token& stop) {
        std::mutex mutex;
        std::condition_variable_any stopped;
        std::unique_lock lock(mutex);
        stopped.wait_for(lock, stop, patience, [] { return false; });
        if (stop.stop_requested()) return;
        spdlog::warn("thread blocked at exit, abandoned: the shutdown has not finished within {} ms", patience.count());
        spdlog::shutdown();
        ::_exit(static_cast<int>(code));
      }) {}

ExitCode end_reading(monitor::Monitor& monitor, const std::vector<MayHang>& threads, ExitCode code) {
  constexpr std::chrono::milliseconds kStopTimeout{500};
  bool is_left_behind = !monitor.stop(kStopTimeout);
  for (const MayHang& one : threads) {
    if (one.workers.stop(kStopTimeout)) continue;
    spdlog::warn("thread blocked at exit, abandoned: {}", one.what);
    is_left_behind = true;
  }
  if (is_left_behind) {
    spdlog::shutdown();
    ::_exit(static_cast<int>(code));
  }
  spdlog::info("stopped");
  return code;
}

}  // namespace neuron::agent
