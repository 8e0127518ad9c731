#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/base/bounded_calls.h"
#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "plugin/kubelet/instance_lock.h"

// One instance of a driver in the kubelet's directories: the names of its sockets, sockets that earlier instances left
// behind (docs/reference/kubelet.md#dra), and the lock that excludes a device plugin.
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

// With the pod's uid in the names two instances can be connected at once; "" gives the names of a single instance.
// Where a path is longer than a unix socket allows, a hash replaces the uid, then also the driver's name. Errors:
// invalid_argument when even that does not fit. Pure.
[[nodiscard]] Result<SocketNames> socket_names(const std::string& kubelet_dir, const std::string& driver,
                                               const std::string& pod_uid);

// Of any instance of the driver. Pure.
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

}  // namespace neuron::plugin::dra
