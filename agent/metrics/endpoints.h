#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/base/clock.h"
#include "agent/base/fd.h"
#include "agent/base/mutex.h"
#include "agent/metrics/exposition.h"
#include "agent/metrics/http_server.h"

// The paths that the agent answers on --metrics-address: the kubelet's probes /healthz and /readyz, /metrics and /node.
namespace neuron::metrics {

// A text for any number of clients: made again after a scan, else at most once a second, and shared by all clients in
// between, so that many or hostile ones cost one rendering. Thread-safe; `clock` must outlive it.
class KeptText {
 public:
  static constexpr std::chrono::seconds kGoodFor{1};
  using Text = std::shared_ptr<const std::string>;

  explicit KeptText(const Clock& clock) : clock_(clock) {}

  // `scan`: number of the newest. `make`: nullptr is returned, and not kept.
  [[nodiscard]] Text get(std::uint64_t scan, const std::function<Text()>& make) EXCLUDES(mutex_, quiet_mutex_);

  // True once after each burst of renderings, when there was none for kGoodFor: the memory that they took, several
  // times the size of the text, can be returned to the system. Does not wait for a rendering.
  [[nodiscard]] bool take_quiet() EXCLUDES(quiet_mutex_);

 private:
  const Clock& clock_;
  Mutex mutex_;                   // held during a rendering
  Text text_ GUARDED_BY(mutex_);  // nullptr: none yet
  SteadyTime text_at_ GUARDED_BY(mutex_){};
  std::uint64_t text_scan_ GUARDED_BY(mutex_) = 0;
  Mutex quiet_mutex_;                                           // taken last
  std::optional<SteadyTime> made_at_ GUARDED_BY(quiet_mutex_);  // of the last rendering since take_quiet()
};

// /metrics. Thread-safe.
class MetricsPage {
 public:
  struct Ports {
    std::function<MetricsInput()> gather;  // must neither block nor read the machine
    std::function<std::uint64_t()> scan;   // number of the newest snapshot (model::Snapshot::number); 0: none
  };
  // `clock` must outlive it.
  MetricsPage(Ports ports, const Clock& clock) : ports_(std::move(ports)), texts_{{KeptText(clock), KeptText(clock)}} {}

  // `accept`: the client's header Accept.
  [[nodiscard]] HttpAnswer answer(std::string_view accept);
  [[nodiscard]] bool take_quiet();  // of either text

 private:
  const Ports ports_;
  std::array<KeptText, 2> texts_;  // by TextFormat
};

// /node: the node's report as JSON (agent/report). Thread-safe.
class NodePage {
 public:
  struct Ports {
    std::function<std::optional<std::string>()> make;  // nullopt before the first scan; as MetricsPage's gather
    std::function<std::uint64_t()> scan;               // likewise
  };
  NodePage(Ports ports, const Clock& clock) : ports_(std::move(ports)), text_(clock) {}

  [[nodiscard]] HttpAnswer answer();
  [[nodiscard]] bool take_quiet() { return text_.take_quiet(); }

 private:
  const Ports ports_;
  KeptText text_;
};

// Paths beside the probes; nullptr: it is not answered. They outlive the server.
struct Pages {
  MetricsPage* metrics = nullptr;
  NodePage* node = nullptr;
};

// The answer to /readyz.
struct Readiness {
  bool ready = false;
  std::string text;  // lines for people: each thing that is served, with what is missing
  friend bool operator==(const Readiness&, const Readiness&) = default;
};

// Answers /healthz (the main loop runs), /readyz (as the loop last reported) and the pages. One thread serves all
// clients, so a probe may wait for a rendering of a page and the locks of its sources; of these the lock of
// plugin/device/allocations.h is held for half a second at most, while the kubelet's disk hangs. A port that is taken,
// or a certificate that cannot be read, affects nothing else: it is logged once and tried again.
class Probes {
 public:
  static constexpr std::chrono::seconds kLoopDue{10};  // an idle loop turns every 2 s
  static constexpr std::chrono::seconds kRetry{5};     // after the server failed to start

  // `address`: nullopt starts no server. `tls`: nullopt for plain HTTP. `clock` must outlive it.
  Probes(std::optional<ListenAddress> address, const Clock& clock, Pages pages = {},
         std::optional<TlsFiles> tls = std::nullopt);

  // Main thread, at each turn of its loop; starts the server where there is none yet.
  void turn(const Readiness& readiness) EXCLUDES(mutex_);
  void stop() { server_.reset(); }                          // main thread
  [[nodiscard]] std::optional<std::uint16_t> port() const;  // main thread; nullopt: no server

  // Any thread.
  [[nodiscard]] HttpAnswer answer(const HttpRequest& request) const EXCLUDES(mutex_);

 private:
  void serve(SteadyTime now);

  const std::optional<ListenAddress> address_;
  const Clock& clock_;
  const Pages pages_;
  const std::optional<TlsFiles> tls_;
  SteadyTime retry_at_{};
  std::string last_error_;  // as logged

  mutable Mutex mutex_;  // not held during I/O
  SteadyTime turned_at_ GUARDED_BY(mutex_);
  Readiness readiness_ GUARDED_BY(mutex_){false, "the node has not been scanned yet\n"};

  std::unique_ptr<HttpServer> server_;  // last: its thread reads the members above
};

}  // namespace neuron::metrics
