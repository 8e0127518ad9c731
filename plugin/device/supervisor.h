#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "agent/base/clock.h"
#include "agent/base/workers.h"
#include "plugin/device/kubelet_link.h"
#include "plugin/device/kubelet_port.h"
#include "plugin/device/plugin_server.h"
#include "plugin/device/served_resources.h"
#include "plugin/kubelet/kubelet_directory.h"
#include "plugin/kubelet/process.h"

namespace neuron::plugin {

// The main thread's loop: waits in poll() for signals, for events of other threads, for the kubelet's directory and for
// timers, and gives all of it to ServedResources. A directory of the kubelet that hangs holds it up for a second, once.
// Construct, run() once, destroy.
class Supervisor {
 public:
  using Outcome = LoopEnd;

  struct Settings {
    std::string device_plugins_dir;
    std::string pod_resources_socket;
    std::chrono::milliseconds pod_resources_interval{};  // how often List is asked when nothing else calls for it
    core::OfferPolicy offer;
    std::string own_pod{};  // see holdings::ListedHolders
    KubeletDirectory::WhenServed when_served = KubeletDirectory::WhenServed::end;
    bool claims_expected = false;  // see ServedResources::Settings
  };
  struct Parts {
    Settings settings;
    const Clock& clock;
    Workers& workers;  // for calls on the kubelet's directories, which may hang
    const CheckpointSource& checkpoint;
    DevicePluginService::Parts service;
    std::function<void()> rescan;                               // SIGHUP
    std::function<void(const ServingState&)> report_serving{};  // at every pass of the loop, 2 s apart at most
  };

  // `signals`: a signalfd for SIGTERM, SIGINT and SIGHUP, which every thread has blocked. Everything must outlive it.
  Supervisor(const Parts& parts, int signals);
  ~Supervisor();  // ends every wait, all streams, then the servers
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  [[nodiscard]] Outcome run();

 private:
  [[nodiscard]] std::optional<Outcome> step();  // one pass of the loop but for its wait; nullopt: go on
  void check_overslept(SteadyTime due);         // `due`: when the process was to run again at the latest
  [[nodiscard]] ServingState serving() const;
  [[nodiscard]] int poll_timeout_ms() const;

  const Parts parts_;
  const int signals_;
  const std::string instance_;  // unique per process
  const BoundedCalls directory_calls_;
  const BoundedCalls pod_resources_calls_;
  KubeletDirectory directory_;
  KubeletLink kubelet_;
  ServedResources resources_;  // its servers end before the members above
};

}  // namespace neuron::plugin
