#pragma once

#include <optional>
#include <string>

#include "agent/health/assess.h"
#include "agent/host/fs_root.h"
#include "agent/host/scanner.h"
#include "tools/neuron-ls/absence.h"
#include "tools/neuron-ls/options.h"
#include "tools/render/node_report.h"

namespace neuron::ls {

// One look at the node: the report, or why there is nothing to list.
struct Reading {
  render::NodeReport report;
  std::optional<Absence> absence;
  std::string warning;  // one line; "" when all that was asked for was had
};

// Reads the node as often as it is asked to. Health is measured by what this object saw before, so growing error
// counters and vanished devices show from the second reading on. `root` and `options` must outlive it. One thread at a
// time; read() may block inside a hung driver, and waits up to two seconds for the kubelet.
class NodeReader {
 public:
  NodeReader(const host::FsRoot& root, const Options& options);

  [[nodiscard]] Reading read();

 private:
  void add_health(model::HostScan scan, render::NodeReport& report);
  void ask_kubelet(Reading& reading) const;

  const host::FsRoot& root_;
  const Options& options_;
  host::Scanner scanner_;
  health::AssessMemory memory_;
};

// Where the kubelet listens: --kubelet-dir, else var/lib/kubelet below the root.
[[nodiscard]] std::string pod_socket(const Options& options);

}  // namespace neuron::ls
