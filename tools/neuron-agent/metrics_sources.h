#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/workers.h"
#include "agent/metrics/exposition.h"
#include "agent/monitor/monitor.h"
#include "agent/monitor/usage_sampler.h"
#include "plugin/kubelet/call_figures.h"
#include "tools/neuron-agent/daemon_parts.h"
#include "tools/neuron-agent/metrics_page.h"
#include "tools/neuron-agent/node_place.h"
#include "tools/neuron-agent/options.h"

namespace neuron::agent {

// Everything that /metrics is made of, of either mode, gathered by looking at what others keep: the newest snapshot,
// the newest samples, copies of who holds what and of what was counted. Reads no file and asks nobody. Thread-safe.
class MetricsSources {
 public:
  // What differs between the modes; must not block.
  struct Ports {
    std::function<std::vector<holdings::Holding>()> holdings;
    // The newest scan, perhaps none, in the numbering of those holdings and with what is held of it.
    std::function<model::SnapshotPtr(model::SnapshotPtr)> numbered;
    // Of those holdings; may be empty, where there are no resources.
    std::function<std::vector<metrics::Offered>(const std::vector<holdings::Holding>&)> offered{};
    std::function<std::map<std::string, std::uint64_t>()> api_calls{};  // by outcome; may be empty
    std::function<NodePlace()> place{};                                 // may be empty, where nobody asks
  };
  // Everything must outlive it.
  struct Parts {
    const Options& options;
    const Clock& clock;
    const monitor::SnapshotStore& store;
    const plugin::CallFigures& figures;
    const ScanTimer& scan_timer;
    Workers& workers;
    monitor::Monitor& monitor;
  };
  MetricsSources(const RootPtr& machine, const Parts& parts, Ports ports);

  // With what the kubelet knows of us now, by name of a resource or of the driver.
  void set_registered(std::map<std::string, bool> registered) EXCLUDES(mutex_);

  [[nodiscard]] metrics::MetricsInput gather() EXCLUDES(mutex_);
  [[nodiscard]] MetricsPage& page() { return page_; }

 private:
  [[nodiscard]] metrics::AgentFigures agent_figures(const model::SnapshotPtr& snapshot) const EXCLUDES(mutex_);

  const Parts parts_;
  const Ports ports_;
  const double started_at_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  monitor::UsageSampler sampler_;
  MetricsPage page_;
  mutable Mutex mutex_;
  std::map<std::string, bool> registered_ GUARDED_BY(mutex_);
  std::optional<SteadyTime> first_asked_at_ GUARDED_BY(mutex_);  // for samples
};

// Of a scan and of what the API server said, for the labels of every series.
[[nodiscard]] metrics::Instance instance_of(const model::HostScan& host, const std::string& node_name,
                                            const NodePlace& place);

}  // namespace neuron::agent
