#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/workers.h"
#include "agent/health/assess.h"
#include "agent/host/fs_root.h"
#include "agent/model/allocation.h"
#include "agent/monitor/watched_scan.h"
#include "agent/report/node_report.h"
#include "tools/neuron-ls/options.h"
#include "tools/render/node_report.h"

namespace neuron::ls {

// Why no device can be listed, in two lines.
struct Absence {
  std::string what;    // what is missing, and at which path
  std::string action;  // what to do about it
};

// Files that this user may not read.
struct Refusals {
  bool class_directory = false;  // sys/class/neuron_device may not be listed
  bool root_only_files = false;  // core_count, connected_devices: readable by root only up to driver 2.27
};

// nullopt when at least one device can be listed: its node is below dev/, and its cores and neighbours are known, from
// the driver or from the tables of the instance type. `root` is for the paths in the text. Pure.
[[nodiscard]] std::optional<Absence> explain_absence(const model::HostScan& scan, const std::string& root,
                                                     const Refusals& refusals = {});

// Command line per process that the driver named: proc/<pid>/cmdline, arguments joined by spaces, made printable. A
// process without one (ended, a kernel thread, not readable) has no entry. Empty where the root's proc belongs to
// another pid namespace than the driver's (a container's own), as the same number is another process there.
// Blocks on file reads.
[[nodiscard]] std::map<int, std::string> read_process_commands(const host::FsRoot& root, const model::HostScan& scan);

// One reading of the node: the report, or why there is nothing to list.
struct Reading {
  render::NodeReport report;
  std::optional<Absence> absence;
  std::string warning;  // one line; "" when everything that was asked for is there
};

using RootPtr = std::shared_ptr<const host::FsRoot>;  // shared with reads that hang

// Reads the node as often as it is asked to. Health compares with this object's earlier readings, so growing error
// counters and vanished devices show from the second reading on. A part of the machine whose read hangs is left out
// after some seconds (monitor/watched_scan.h), and `warning` names it. `options` must outlive it. One thread at a time;
// read() waits up to two seconds for the kubelet.
class NodeReader {
 public:
  NodeReader(RootPtr root, const Options& options);

  [[nodiscard]] Reading read();

  // False: a read hangs in a thread that cannot be ended, so that the process has to end at once (_Exit).
  [[nodiscard]] bool stop() { return workers_.stop(kStopTimeout); }

 private:
  static constexpr std::chrono::milliseconds kStopTimeout{300};  // of a thread that does not hang

  [[nodiscard]] model::HostScan assessed(model::HostScan scan, bool own_dev);
  void ask_kubelet(Reading& reading) const;

  const RootPtr root_;
  const Options& options_;
  Workers workers_;
  monitor::BoundedScans scans_;
  health::AssessMemory memory_;
};

}  // namespace neuron::ls
