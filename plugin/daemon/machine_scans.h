#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/base/result.h"
#include "agent/base/workers.h"
#include "agent/grant/node_units.h"
#include "agent/host/fs_root.h"
#include "agent/host/scanner.h"
#include "agent/model/snapshot.h"
#include "agent/monitor/watched_scan.h"

// Scans of the machine below one root, for the monitor and for single uses.
namespace neuron::plugin {

using RootPtr = std::shared_ptr<const host::FsRoot>;  // shared with reads that hang

// Duration of the newest finished scan, of any scanner. Thread-safe.
class ScanTimer {
 public:
  void note(std::chrono::nanoseconds took) { last_ns_ = took.count(); }
  [[nodiscard]] std::optional<double> last_seconds() const {  // nullopt: no scan has finished
    const std::chrono::nanoseconds last{last_ns_.load()};
    return last.count() < 0 ? std::nullopt : std::optional(std::chrono::duration<double>(last).count());
  }

 private:
  std::atomic<std::int64_t> last_ns_ = -1;
};

// Makes scanners of one machine, each of which lives as long as a scan of it may hang.
[[nodiscard]] monitor::WatchedScan::MakeScan scan_maker(const RootPtr& root, const std::shared_ptr<ScanTimer>& timer,
                                                        host::KernelLogUse kernel_log);

// A scan that begins now, assessed without earlier ones. May block for as long as a driver hangs.
[[nodiscard]] model::SnapshotPtr scan_now(const host::FsRoot& root, host::KernelLogUse kernel_log);

// The same of the directory `root`, under watch: a part that does not answer within some seconds is left out, and its
// thread is left to `workers`. Logs missing, unreadable and unanswered values. Errors: the root cannot be opened.
[[nodiscard]] Result<model::SnapshotPtr> scan_once(const std::string& root, host::KernelLogUse kernel_log,
                                                   Workers& workers);

// Device memory that processes own on one physical core, in bytes; nullopt: unknown. `node`: of the newest scan, null
// before the first. Blocks on file reads.
[[nodiscard]] std::optional<std::uint64_t> memory_in_use(const host::FsRoot& root, const grant::NodeUnitsPtr& node,
                                                         int device, int core);

}  // namespace neuron::plugin
