#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/base/result.h"
#include "agent/base/workers.h"
#include "agent/core/offer_policy.h"
#include "agent/grant/grant.h"
#include "agent/host/fs_root.h"
#include "agent/host/scanner.h"
#include "agent/model/snapshot.h"
#include "agent/monitor/watched_scan.h"

// Scans of the machine below one root, for the monitor and for single uses, and the log of what they show: hardware of
// the node, its health, and how it is offered.
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

// Scans the directory `root` once, assessed as scan_now() does, under watch: a part that does not answer within some
// seconds is left out, and its thread is left to `workers`. Logs missing, unreadable and unanswered values. Errors: the
// root cannot be opened.
[[nodiscard]] Result<model::SnapshotPtr> scan_once(const std::string& root, host::KernelLogUse kernel_log,
                                                   Workers& workers);

// Device memory that processes own on one physical core, in bytes; nullopt: unknown. `node`: of the newest snapshot,
// null before the first. Blocks on file reads.
[[nodiscard]] std::optional<std::uint64_t> memory_in_use(const host::FsRoot& root, const grant::NodeUnitsPtr& node,
                                                         int device, int core);

// Warns of devices and interfaces that the instance type has and the node does not show.
void log_missing(const model::HostScan& host);

// Warns of each value that cannot be read, except for problems of the host that repeat the sentence of a device's
// health.
void log_problems(const model::HostScan& host);

struct OfferLine {
  bool warning = false;
  std::string text;
};

// Remarks on `offer` for this node, whose devices may be fewer than those of its instance type: the cost of offering
// both names, the devices that a split gives to each name, indices that no device of the type has, devices that are
// offered under no name, a node of which nothing is offered. Empty where there is nothing to remark, and where the node
// has neither a device nor an interface. Pure.
[[nodiscard]] std::vector<OfferLine> offer_lines(const core::OfferPolicy& offer, const model::HostScan& host);

// Logs the inventory of the first snapshot, then changes (model::diff); of health each change of state or reason, with
// the advice, also back to healthy. One thread.
class InventoryLog {
 public:
  // `offer`: nullopt in DRA mode, where no resources are offered.
  explicit InventoryLog(std::optional<core::OfferPolicy> offer) : offer_(std::move(offer)) {}
  void log(const model::SnapshotPtr& snapshot);

 private:
  void log_offer(const model::HostScan& host);
  void log_ignored_lines(const model::KernelLog& log);
  void log_election(const model::HostScan& host);

  std::optional<core::OfferPolicy> offer_;
  model::SnapshotPtr last_;  // null before the first
  // The states that were logged last:
  std::string last_node_;
  std::string last_offer_;
  std::string last_election_;
  std::uint64_t last_ignored_ = 0;  // lines of the kernel log
};

}  // namespace neuron::plugin
