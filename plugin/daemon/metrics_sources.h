#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/workers.h"
#include "agent/kube/api_client.h"
#include "agent/metrics/endpoints.h"
#include "agent/monitor/monitor.h"
#include "agent/monitor/watched_scan.h"
#include "plugin/daemon/machine_scans.h"
#include "plugin/kubelet/call_figures.h"

namespace neuron::plugin {

// Gathers the input of /metrics and /node, in either mode, from what others keep: the newest snapshot and samples,
// copies of holdings and counts. Reads no file and makes no call. Thread-safe.
class MetricsSources {
 public:
  // Differences between the modes; must not block.
  struct Ports {
    std::function<std::vector<holdings::Holding>()> holdings;
    // The newest snapshot (may be null) in the numbering of those holdings, with held devices that it lacks.
    std::function<model::SnapshotPtr(model::SnapshotPtr)> numbered;
    // For /node: with a claim once for each container that uses it. Empty: as `holdings`.
    std::function<std::vector<holdings::Holding>()> by_container{};
    // The units offered, given those holdings. Empty: the mode has no resources.
    std::function<std::vector<metrics::Offered>(const std::vector<holdings::Holding>&)> offered{};
  };
  // References must outlive it.
  struct Parts {
    std::string node_name;
    std::chrono::milliseconds scan_interval{};
    const Clock& clock;
    const monitor::SnapshotStore& store;
    const CallFigures& figures;
    const ScanTimer& scan_timer;
    Workers& workers;
    monitor::Monitor& monitor;
    const kube::ObservedApi* api = nullptr;  // nullptr: the API server is not used
  };
  MetricsSources(const RootPtr& machine, const Parts& parts, Ports ports);

  // Registrations that the kubelet has accepted, by name of a resource or of the driver.
  void set_registered(std::map<std::string, bool> registered) EXCLUDES(mutex_);

  [[nodiscard]] metrics::MetricsInput gather() EXCLUDES(mutex_);
  // The newest snapshot as a node's report; nullopt before the first. What containers hold is unknown until the kubelet
  // has accepted a registration, which comes after it was asked.
  [[nodiscard]] std::optional<std::string> node_document() const EXCLUDES(mutex_);
  [[nodiscard]] metrics::MetricsPage& page() { return page_; }
  [[nodiscard]] metrics::NodePage& node_page() { return node_page_; }

 private:
  [[nodiscard]] bool knows_holders() const EXCLUDES(mutex_);
  [[nodiscard]] metrics::AgentFigures agent_figures(const model::SnapshotPtr& snapshot) const EXCLUDES(mutex_);

  const Parts parts_;
  const Ports ports_;
  const double started_at_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  mutable Mutex mutex_;
  std::map<std::string, bool> registered_ GUARDED_BY(mutex_);
  bool holders_known_ GUARDED_BY(mutex_) = false;
  std::optional<SteadyTime> first_asked_at_ GUARDED_BY(mutex_);  // for samples
  monitor::UsageSampler sampler_;
  metrics::MetricsPage page_;
  metrics::NodePage node_page_;
};

// The labels of every series. `place`: of the node's object.
[[nodiscard]] metrics::Instance instance_of(const model::HostScan& host, const std::string& node_name,
                                            const kube::NodePlace& place);

}  // namespace neuron::plugin
