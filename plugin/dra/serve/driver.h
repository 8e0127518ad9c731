#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "agent/base/bounded_calls.h"
#include "agent/base/clock.h"
#include "plugin/dra/serve/dra_server.h"
#include "plugin/dra/serve/kubelet_directories.h"
#include "plugin/kubelet/event_queue.h"
#include "plugin/kubelet/signals.h"
#include "plugin/kubelet/socket_watch.h"

namespace neuron::plugin::dra {

// The state of registration. Passive data.
struct DriverState {
  bool serving = false;     // both sockets exist
  bool registered = false;  // the kubelet registered the driver since it is served
  std::string problem;      // why it is not served, or why the kubelet rejected it; "" = none
  friend bool operator==(const DriverState&, const DriverState&) = default;
};

// Events from other threads.
struct NodeScanned {};  // claims can be prepared
struct CdiMountDead {
};  // the CDI directory was replaced on the host, and the mount still shows the old one: the loop ends
using DriverEvent = std::variant<RegistrationResult, NodeScanned, CdiMountDead>;

// The loop of DRA mode: waits in poll() for signals, events, changes in the kubelet's two directories and timers; keeps
// both sockets served, and repeats the health list. A directory of the kubelet that hangs delays it by kBudget, once.
// Construct, run() once, destroy. One thread.
class Driver {
 public:
  using Outcome = LoopEnd;
  using Events = EventQueueOf<DriverEvent>;

  struct Settings {
    std::string kubelet_dir;
    std::string name;     // of the driver
    std::string pod_uid;  // "" = there is never another instance
    // It is served after the first scan, so that no claim is rejected for lack of one; but at the latest after this
    // time, as claims are released without a scan.
    std::chrono::milliseconds scan_patience{3000};
  };
  struct Parts {
    Settings settings;
    const Clock& clock;
    Events& events;
    ClaimCalls& claims;
    HealthHub& health;
    Workers& workers;                                   // for claims, and for calls on the kubelet's directories
    std::function<void()> on_registered;                // the kubelet may have deleted the driver's slices before
    std::function<void()> rescan;                       // SIGHUP
    std::function<void(const DriverState&)> on_turn{};  // at every turn of the loop, 2 s apart at most
  };
  static constexpr std::chrono::milliseconds kBudget{1000};  // of one call on a directory

  // The kubelet sets a device to Unknown 30 s after the last message that named it.
  static constexpr std::chrono::seconds kHealthEvery{10};

  // `signals`: a signalfd for SIGTERM, SIGINT and SIGHUP, which every thread has blocked. Everything must outlive it;
  // parts.claims also the calls that still run when it ends, and all but `signals` the calls that hang.
  Driver(Parts parts, int signals);
  ~Driver();  // as of DraServer, which is left behind when its directories hang
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] Outcome run();

  struct Watches {
    SocketWatch claims;
    SocketWatch registry;
  };

 private:
  [[nodiscard]] std::optional<Outcome> turn();
  [[nodiscard]] std::optional<Outcome> guard();
  [[nodiscard]] std::optional<Outcome> keep_served();
  void end_server();
  void restart(const std::string& why);
  void check_sockets();
  void handle(const RegistrationResult& result);
  void handle(const NodeScanned& event);
  void handle(const CdiMountDead& event);
  void keep_health_fresh();
  void set_problem(std::string problem);
  [[nodiscard]] int poll_timeout_ms() const;

  const Parts parts_;
  const int signals_;
  const BoundedCalls calls_;
  ModeGuard guard_;
  SocketNames names_;                 // set by run()
  std::shared_ptr<Watches> watches_;  // null before the sockets were served; shared with calls that hang, as is
  std::shared_ptr<DraServer> server_;
  DriverState state_;
  bool cdi_is_dead_ = false;
  SteadyTime serve_at_{};  // the next attempt, while it is not served
  SteadyTime check_at_{};  // the next check of sockets, directories and peers
  SteadyTime sweep_at_{};
  SteadyTime health_at_{};
  SteadyTime health_often_until_{};  // after the end of a peer, with whose stream the kubelet forgets the health
  std::set<std::string> peers_;      // sockets on which other instances listen
};

}  // namespace neuron::plugin::dra
