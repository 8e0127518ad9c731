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
#include "plugin/dra/serve/mode_guard.h"
#include "plugin/dra/serve/socket_names.h"
#include "plugin/kubelet/event_queue.h"
#include "plugin/kubelet/socket_watch.h"

namespace neuron::plugin::dra {

// How far the driver is on its way to the kubelet. Passive data.
struct DriverState {
  bool serving = false;     // both sockets are there
  bool registered = false;  // the kubelet took it, since it is served
  std::string problem;      // what keeps it from being served, or why the kubelet refused it; "" = nothing
  friend bool operator==(const DriverState&, const DriverState&) = default;
};

// What other threads tell the loop.
struct NodeScanned {};   // claims can be prepared
struct CdiMountDead {};  // the mount of the CDI directory keeps one that was removed on the host: the loop ends
using DriverEvent = std::variant<RegistrationNews, NodeScanned, CdiMountDead>;

// The loop of DRA mode: waits in poll() for signals, for the kubelet's words, for its two directories and for timers;
// keeps both sockets served, whatever happens to them, and the kubelet's picture of our health fresh. A directory of
// the kubelet that hangs holds it up for kBudget, once. Construct, run() once, destroy. One thread.
class Driver {
 public:
  enum class Outcome { stopped, other_agent, dead_mount, failed };
  using Events = EventQueueOf<DriverEvent>;

  struct Settings {
    std::string kubelet_dir;
    std::string name;     // of the driver
    std::string pod_uid;  // "" = there is never another instance
    // Served once the node was scanned, so that no claim is refused for that; but after this, as claims are released
    // without any scan.
    std::chrono::milliseconds scan_patience{3000};
  };
  struct Parts {
    Settings settings;
    const Clock& clock;
    Events& events;
    ClaimPort& claims;
    HealthHub& health;
    BlockingCalls::Run run;
    std::function<void()> registered;                // the kubelet took us; it may have deleted our slices before
    std::function<void()> rescan;                    // SIGHUP
    std::function<void(const DriverState&)> tell{};  // at every turn of the loop, 2 s apart at most
    Workers& workers;                                // for calls on the kubelet's directories, which may hang
  };
  static constexpr std::chrono::milliseconds kBudget{1000};  // of one call on a directory

  // The kubelet calls a device Unknown 30 s after the last message that named it.
  static constexpr std::chrono::seconds kHealthEvery{10};

  // `signals`: a signalfd for SIGTERM, SIGINT and SIGHUP, which every thread has blocked. Everything must outlive it;
  // parts.claims also the calls that still run when it ends, and all but `signals` the calls that hang.
  Driver(Parts parts, int signals);
  ~Driver();  // as of DraServer, which is left behind when its directories hang
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  [[nodiscard]] Outcome run();

 private:
  [[nodiscard]] std::optional<Outcome> turn();
  [[nodiscard]] std::optional<Outcome> guard();
  [[nodiscard]] std::optional<Outcome> keep_served();
  struct Served;   // what serve() makes
  struct Seen;     // of the sockets and their directories
  struct Watches;  // of both directories
  [[nodiscard]] static Served serve(const SocketNames& names, const Parts& parts,
                                    const std::shared_ptr<Watches>& before);
  [[nodiscard]] static Seen see(const SocketNames& names, const std::string& driver, Watches& watches);
  void end_server();
  void lose(const std::string& why);
  void look_at_sockets();
  void hear(const RegistrationNews& news);
  void hear(const NodeScanned& news);
  void hear(const CdiMountDead& news);
  void keep_health_fresh();
  [[nodiscard]] static std::set<std::string> find_peers(const SocketNames& names, const std::string& driver);
  void say_problem(std::string problem);
  [[nodiscard]] int poll_timeout_ms() const;

  const Parts parts_;
  const int signals_;
  const BoundedCalls calls_;
  ModeGuard guard_;
  SocketNames names_;                 // set by run()
  std::shared_ptr<Watches> watches_;  // null before the first serve(); shared with calls that hang, as is
  std::shared_ptr<DraServer> server_;
  DriverState state_;
  bool cdi_is_dead_ = false;
  SteadyTime serve_at_{};  // when to try, while it is not served
  SteadyTime look_at_{};   // at the sockets, their directories and the peers
  SteadyTime sweep_at_{};
  SteadyTime health_at_{};
  SteadyTime health_often_until_{};  // a peer has gone: the kubelet forgets what we said when its stream ends
  std::set<std::string> peers_;      // sockets of other instances that listen
};

}  // namespace neuron::plugin::dra
