#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/base/workers.h"
#include "plugin/dra/claim/claim_request.h"
#include "plugin/dra/serve/node_board.h"
#include "plugin/kubelet/kubelet_directory.h"
#include "plugin/kubelet/process.h"
#include "plugin/kubelet/socket_file.h"

// One instance of the driver for the kubelet (docs/reference/kubelet.md#dra): its names in the kubelet's directories
// and the lock that excludes a device plugin (kubelet_directories.cpp), the gRPC server on its sockets
// (dra_server.cpp), and the loop that keeps both.
namespace neuron::plugin::dra {

struct SocketNames {
  std::string claims_dir;    // <kubelet>/plugins/<driver>, of this driver alone
  std::string claims;        // file name in it, "dra-<pod uid>.sock"
  std::string registry_dir;  // <kubelet>/plugins_registry, of all plugins
  std::string registration;  // file name in it, "<driver>-<pod uid>-reg.sock"

  [[nodiscard]] std::string claims_path() const { return claims_dir + "/" + claims; }
  [[nodiscard]] std::string registration_path() const { return registry_dir + "/" + registration; }
  friend bool operator==(const SocketNames&, const SocketNames&) = default;
};

// The names of an instance's sockets. With the pod's uid in them two instances can be connected at once; "" gives the
// names of a single instance. If a path is longer than a unix socket allows, a hash replaces the uid, then also the
// driver's name. Errors: invalid_argument when even that does not fit. Pure.
[[nodiscard]] Result<SocketNames> socket_names(const std::string& kubelet_dir, const std::string& driver,
                                               const std::string& pod_uid);

// Whether a socket's name is one of any instance of the driver. Pure.
[[nodiscard]] bool is_claims_socket(std::string_view name);
[[nodiscard]] bool is_registration_socket(std::string_view name, std::string_view driver);

// Removes sockets of killed instances: those with such names that no process listens on. Sockets younger than `young`
// stay, since a socket looks dead between bind and listen. Returns their number. Any thread; local files only.
int remove_dead_sockets(const SocketNames& own, std::string_view driver,
                        std::chrono::seconds young = std::chrono::seconds(10));

// Excludes a device plugin of this project from the node while it exists, and finds one that runs: the two modes would
// assign the same hardware twice (docs/adr/0011-dra.md). A missing directory is locked once it exists. One thread.
class ModeGuard {
 public:
  static constexpr std::chrono::milliseconds kBudget{1000};  // of one access to the directory

  // `directory`: the kubelet's device-plugins. `calls`: for accesses to it, which may hang. Both must outlive it.
  ModeGuard(std::string directory, const Clock& clock, const BoundedCalls& calls)
      : directory_(std::move(directory)), clock_(clock), calls_(calls) {}

  // Checks the lock, every 2 s at most. nullopt: the lock is held, or there is no directory. Errors, with a message
  // that stays the same: failed_precondition when a device plugin runs, naming it; others when the lock fails. While
  // the directory hangs the answer stays.
  [[nodiscard]] std::optional<Error> check();
  [[nodiscard]] SteadyTime next() const { return check_at_; }  // time of the next check

 private:
  const std::string directory_;
  const Clock& clock_;
  const BoundedCalls& calls_;
  std::shared_ptr<const InstanceLock> lock_;  // shared with calls that hang
  std::optional<Error> error_;
  SteadyTime check_at_{};
};

// The kubelet's answer to the registration.
struct RegistrationResult {
  bool registered = false;
  std::string error;  // why not; foreign text made printable
};

// The kubelet's three services on the two sockets of one instance: claims (v1 and v1beta1) and health on one, to which
// the kubelet keeps a connection (when it ends, the driver has gone for the kubelet, so an idle connection stays open);
// registration on the other. Not synchronised: one owner thread.
class DraServer {
 public:
  static constexpr std::size_t kMostCalls = 128;  // concurrent calls about claims; no node has as many pods with claims

  struct Parts {
    ClaimCalls& claims;
    HealthHub& health;
    Workers& workers;                                   // for calls about claims, which may block
    std::function<void(RegistrationResult)> on_result;  // on gRPC's threads; must not block
  };

  // Serves claims, then registration: when the latter's socket appears, the kubelet may dial both. Errors: unavailable
  // (a directory is not writable, naming it); failed_precondition (another instance listens under the same name).
  // `parts` must outlive the server; `parts.claims` also every call that still runs when the server ends.
  [[nodiscard]] static Result<std::unique_ptr<DraServer>> start(const SocketNames& names, const std::string& driver,
                                                                const Parts& parts);
  // Ends registration first, so that the kubelet turns to another instance; then waits for running calls and stops
  // them; then ends the streams. Returns within 4 s.
  ~DraServer();
  DraServer(const DraServer&) = delete;
  DraServer& operator=(const DraServer&) = delete;

  // After the loss of its socket. Errors: as start.
  [[nodiscard]] Result<void> serve_registration_again();

  [[nodiscard]] std::size_t calls() const;  // about claims, that are not answered yet

 private:
  struct Services;  // gRPC
  DraServer(SocketNames names, const std::string& driver, const Parts& parts);

  const SocketNames names_;
  HealthHub& health_;
  const std::unique_ptr<Services> services_;
};

// The state of registration. Passive data.
struct DriverState {
  bool serving = false;     // both sockets exist
  bool registered = false;  // the kubelet registered the driver since it is served
  std::string problem;      // why it is not served, or why the kubelet rejected it; "" = none
  friend bool operator==(const DriverState&, const DriverState&) = default;
};

// Events from other threads.
struct NodeScanned {};  // and the kubelet was asked what is held, so that claims can be prepared
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
    // It is served after NodeScanned, so that no claim is rejected for lack of a scan; but at the latest after this
    // time, as claims are released without one.
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
