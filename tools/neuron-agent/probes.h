#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/base/clock.h"
#include "agent/base/listen_address.h"
#include "agent/base/mutex.h"
#include "agent/metrics/http_server.h"
#include "plugin/device/readiness.h"
#include "tools/neuron-agent/metrics_page.h"

namespace neuron::agent {

// What Probes answers beside the probes, and how.
struct ProbeExtras {
  MetricsPage* page = nullptr;             // of /metrics; nullptr: there is none
  std::optional<metrics::TlsFiles> tls{};  // nullopt: plain HTTP
};

// Answers on --metrics-address: the kubelet's probes /healthz, whether main's loop turns, and /readyz; and /metrics.
// The loop tells how things stand; the server's thread reads the last word, under a lock that nobody holds during I/O.
// One thread answers all, so that a probe may wait for a text of /metrics: for its rendering and for the locks of what
// it is made of, of which that of plugin/device/allocations.h is held over one stat of the kubelet's checkpoint.
// A port that is taken, or a certificate that cannot be read, keeps nothing else from being served: it is said once and
// tried again.
class Probes {
 public:
  static constexpr std::chrono::seconds kLoopDue{10};  // the loop turns every 2 s when nothing happens
  static constexpr std::chrono::seconds kRetry{5};     // after the server could not start, for whatever reason

  // `address`: nullopt answers nobody. `clock` and the page must outlive it.
  Probes(std::optional<ListenAddress> address, const Clock& clock, ProbeExtras extras = {});

  [[nodiscard]] bool wanted() const { return address_.has_value(); }

  // Main's thread, at every turn of its loop; starts the server where there is none yet.
  void turn(const plugin::ServingState& state) EXCLUDES(mutex_);  // of a device plugin
  void turn(const plugin::Readiness& readiness) EXCLUDES(mutex_);
  void stop() { server_.reset(); }                          // main's thread
  [[nodiscard]] std::optional<std::uint16_t> port() const;  // main's thread; nullopt: not served

  // Any thread.
  [[nodiscard]] metrics::HttpAnswer answer(const metrics::HttpRequest& request) const EXCLUDES(mutex_);

 private:
  void turn(std::shared_ptr<const plugin::Readiness> changed) EXCLUDES(mutex_);  // null: as before
  void serve(SteadyTime now);
  [[nodiscard]] std::optional<metrics::TlsFiles> tls() const;

  const std::optional<ListenAddress> address_;
  const Clock& clock_;
  const ProbeExtras extras_;
  SteadyTime retry_at_{};
  std::string last_error_;      // as logged
  plugin::ServingState state_;  // that readiness_ was made of

  mutable Mutex mutex_;
  SteadyTime turned_at_ GUARDED_BY(mutex_);
  std::shared_ptr<const plugin::Readiness> readiness_ GUARDED_BY(mutex_);  // never null

  std::unique_ptr<metrics::HttpServer> server_;  // last: its thread reads the members above
};

}  // namespace neuron::agent
