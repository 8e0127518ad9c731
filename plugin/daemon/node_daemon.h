#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/base/workers.h"
#include "agent/core/offer_policy.h"
#include "agent/grant/grant.h"
#include "agent/host/scanner.h"
#include "agent/kube/api_client.h"
#include "agent/metrics/endpoints.h"
#include "agent/monitor/monitor.h"
#include "agent/status/status_writer.h"
#include "plugin/daemon/machine_scans.h"
#include "plugin/daemon/metrics_sources.h"
#include "plugin/kubelet/call_figures.h"
#include "plugin/kubelet/process.h"

namespace neuron::plugin {

struct NodeStatusOptions {                            // docs/node-status.md
  bool enabled = false;                               // --node-status
  status::ReportSettings report;                      // --accelerated-hardware-ready, --unhealthy-devices-for-node
  std::optional<status::StartupTaint> startup_taint;  // --startup-taint
};

// Options of `run` that mean the same in both modes.
struct DaemonSettings {
  std::string root = "/";                                    // --root
  host::KernelLogUse kernel_log = host::KernelLogUse::none;  // --kernel-log
  std::chrono::milliseconds scan_interval{5000};             // --scan-interval
  std::string node_name;                                     // --node-name; "" = unknown
  NodeStatusOptions node_status;
  std::optional<ListenAddress> metrics_address;  // --metrics-address; nullopt: off
  std::string metrics_tls_cert;                  // --metrics-tls-cert; "" with the next: plain HTTP
  std::string metrics_tls_key;                   // --metrics-tls-key
  bool node_document = true;                     // --node-document
};

// Threads that may hang at the end, and what they would hang in, for the log.
struct MayHang {
  Workers& workers;
  std::string what;
};
inline constexpr const char* kDriverRead = "a read inside the driver";

// Ends the process with `code` when its orderly end takes longer than `patience`, as when a call of a library hangs.
// Logged. The destructor ends the wait.
class EndDeadline {
 public:
  static constexpr std::chrono::milliseconds kPatience{8000};  // longer than any end without such a call
  explicit EndDeadline(ExitCode code, std::chrono::milliseconds patience = kPatience);

 private:
  std::jthread thread_;
};

// The part of `neuron-agent run` that is the same in both modes: scans of the machine with their log, the node's status
// at the API server, probes and metrics, and an end that no hanging thread delays. A mode builds its own parts on it,
// then calls start(), turn() in its main loop, begin_end() and end(). Main thread, except where noted.
class NodeDaemon {
 public:
  using OnNode = std::function<void(grant::NodeUnitsPtr)>;

  struct Mode {
    CallFigures::Names counted;                // names that calls of the kubelet are counted by
    std::optional<core::OfferPolicy> offer{};  // for the log; nullopt: no resources are offered
    std::optional<kube::ApiPlaces> api{};      // nullopt: the API server is not used, and has no node status
  };

  // Starts writing the node's status, if that is on. `settings` must outlive it.
  NodeDaemon(const DaemonSettings& settings, RootPtr machine, Mode mode);
  ~NodeDaemon() { close(); }
  NodeDaemon(const NodeDaemon&) = delete;
  NodeDaemon& operator=(const NodeDaemon&) = delete;

  // For parts of the mode; all but `api` are thread-safe to use, and outlive those parts.
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] Workers& workers() { return workers_; }  // for jobs that may hang in the driver
  [[nodiscard]] CallFigures& figures() { return figures_; }
  [[nodiscard]] kube::Api& api() { return *api_; }                                   // only with Mode::api; thread-safe
  [[nodiscard]] std::function<void(std::function<void()>)> runner();                 // of jobs on workers()
  [[nodiscard]] std::function<void(SteadyTime, std::function<void()>)> scheduler();  // on the monitor's thread
  void rescan() { monitor_.rescan_now(); }
  // Blocks on file reads.
  [[nodiscard]] std::optional<std::uint64_t> memory_in_use(const grant::NodeUnitsPtr& node, int device, int core) const;
  [[nodiscard]] model::SnapshotPtr scan_now() const;  // as the function; may block for as long as a driver hangs

  // Starts scanning and listening. `on_node`: on the monitor's thread, at each new generation; must not block. Both
  // arguments are used until end().
  void start(OnNode on_node, MetricsSources::Ports metrics);

  // At each turn of the main loop. `registered`: as of MetricsSources.
  void turn(const metrics::Readiness& readiness, std::map<std::string, bool> registered);
  // Returns freed memory to the system in some seconds, at a turn: after a burst of work whose buffers are several
  // times what stays in use, once the threads that did it have ended (Workers::kIdle).
  void trim_later();

  // Before the servers of the mode end: from here on the end is bounded by EndDeadline.
  void begin_end(ExitCode code) { ending_.emplace(code); }
  // Ends probes, metrics, node status and all calls to the API server; what is stored there stays. May be repeated.
  void close();
  // close(), then ends the monitor and the threads of `workers`, workers() among them. What hangs is logged and left
  // behind, with everything that it uses: the process ends at once, with `code`.
  [[nodiscard]] ExitCode end(ExitCode code, const std::vector<MayHang>& workers);

 private:
  void publish(const model::SnapshotPtr& snapshot);
  void note_offered(const metrics::Readiness& readiness, const std::map<std::string, bool>& registered);

  const DaemonSettings& settings_;
  const RootPtr machine_;
  const SystemClock clock_;
  CallFigures figures_;
  std::optional<kube::ApiClient> client_;
  std::optional<kube::ObservedApi> api_;  // of client_
  std::optional<status::StatusWriter> status_;
  std::jthread status_thread_;
  bool is_offered_ = false;  // once: all that the node has is registered
  InventoryLog log_;         // of the monitor's thread
  OnNode on_node_;
  const std::shared_ptr<ScanTimer> scan_timer_ = std::make_shared<ScanTimer>();
  monitor::SnapshotStore store_;
  Workers workers_;
  monitor::Monitor monitor_;
  std::optional<MetricsSources> sources_;
  std::optional<metrics::Probes> probes_;
  std::optional<SteadyTime> trim_at_;
  std::optional<EndDeadline> ending_;
};

// Ends a program that scanned once: at once where a read hangs.
[[nodiscard]] ExitCode end_once(Workers& workers, ExitCode code);

}  // namespace neuron::plugin
