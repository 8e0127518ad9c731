#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/base/workers.h"
#include "agent/host/fs_root.h"
#include "agent/host/scanner.h"
#include "agent/metrics/tls_identity.h"
#include "agent/model/snapshot.h"
#include "agent/monitor/monitor.h"
#include "agent/monitor/watched_scan.h"
#include "tools/neuron-agent/daemon.h"
#include "tools/neuron-agent/options.h"

// What the composition roots of both modes share.
namespace neuron::agent {

using RootPtr = std::shared_ptr<const host::FsRoot>;  // shared with reads that hang

// Says in the log what the program was told, and what of it is doubtful.
void log_start(const Options& options);

// How long the last scan took that came to its end, of whatever scanner. Thread-safe.
class ScanTimer {
 public:
  void note(std::chrono::nanoseconds took) { last_ns_ = took.count(); }
  [[nodiscard]] std::optional<double> last_seconds() const {  // nullopt: none has ended
    const std::chrono::nanoseconds last{last_ns_.load()};
    return last.count() < 0 ? std::nullopt : std::optional(std::chrono::duration<double>(last).count());
  }

 private:
  std::atomic<std::int64_t> last_ns_ = -1;
};

// Makes scanners of one machine, each of which lives as long as a scan of it may hang.
[[nodiscard]] monitor::WatchedScan::MakeScan scan_maker(const RootPtr& root, const std::shared_ptr<ScanTimer>& timer,
                                                        host::KernelLogUse kernel_log);

// Of --metrics-tls-cert and --metrics-tls-key; nullopt: plain HTTP.
[[nodiscard]] std::optional<metrics::TlsFiles> tls_files(const Options& options);

// The name of the pod that this process runs in, which is the host's name there; "" = in none.
[[nodiscard]] std::string own_pod_name();

// A scan of its own that begins now, assessed as the first. May block for as long as a driver hangs.
[[nodiscard]] model::SnapshotPtr scan_now(const host::FsRoot& root, host::KernelLogUse kernel_log);

// The same of the root in `options`, under watch: what does not answer within some seconds is left out, and its thread
// is left to `workers`. What is missing, cannot be read or does not answer is logged. Errors: it cannot be opened.
[[nodiscard]] Result<model::SnapshotPtr> scan_once(const Options& options, Workers& workers);

// Ends a program that scanned once and has printed what it saw: at once where a read hangs.
[[nodiscard]] ExitCode end_once(Workers& workers, ExitCode code);

// Threads that may hang, and what hangs then, for the log.
struct MayHang {
  Workers& workers;
  std::string what;
};
inline constexpr const char* kDriverRead = "a read inside the driver";

// Ends the process with `code` when its orderly end takes longer than `patience`: a call that nothing bounds hangs, as
// one of a library. Logged. The destructor ends the wait.
class EndDeadline {
 public:
  static constexpr std::chrono::milliseconds kPatience{8000};  // longer than any end without such a call
  explicit EndDeadline(ExitCode code, std::chrono::milliseconds patience = kPatience);

 private:
  std::jthread thread_;
};

// Ends the monitor and all threads that may hang. What hangs is logged and left behind, and what it uses is never
// freed: the process ends at once, with `code`.
[[nodiscard]] ExitCode end_reading(monitor::Monitor& monitor, const std::vector<MayHang>& threads, ExitCode code);

}  // namespace neuron::agent
