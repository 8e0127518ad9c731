#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "agent/base/workers.h"
#include "agent/health/assess.h"
#include "agent/host/fs_root.h"
#include "agent/monitor/watched_scan.h"
#include "tools/neuron-ls/absence.h"
#include "tools/neuron-ls/options.h"
#include "tools/render/node_report.h"

namespace neuron::ls {

// One reading of the node: the report, or why there is nothing to list.
struct Reading {
  render::NodeReport report;
  std::optional<Absence> absence;
  std::string warning;  // one line; "" when nothing that was asked for is lacking
};

using RootPtr = std::shared_ptr<const host::FsRoot>;  // shared with reads that hang

// Reads the node as often as it is asked to. Health is measured by what this object saw before, so growing error
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

  void add_health(model::HostScan scan, render::NodeReport& report);
  void ask_kubelet(Reading& reading) const;

  const RootPtr root_;
  const Options& options_;
  Workers workers_;
  monitor::BoundedScans scans_;
  health::AssessMemory memory_;
};

// Where the kubelet listens: --kubelet-dir, else var/lib/kubelet below the root.
[[nodiscard]] std::string pod_socket(const Options& options);

}  // namespace neuron::ls
