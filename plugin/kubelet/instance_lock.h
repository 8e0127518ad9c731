#pragma once

#include <optional>
#include <string>

#include "agent/base/fd.h"
#include "agent/base/result.h"

namespace neuron::plugin {

// Held by the one agent that serves a kubelet as a device plugin, or by all instances of the one driver that serves it
// claims: a node runs one mode (docs/adr/0011-dra.md). Until the process ends; a crash releases it. It is a lock of the
// kubelet's device-plugins directory itself, as kubelets before 1.33 delete every file in it when they start; when
// another directory has come to the same path, take a new lock. While it is held, inotify does not report the removal
// of the directory (socket_watch.h).
class InstanceLock {
 public:
  enum class Mode {
    device_plugin,  // for itself alone
    claims,         // beside others of the same mode, as in a rolling update
  };

  // Errors: failed_precondition when another process holds it, with its pid if it lives in this pid namespace, else the
  // sockets on which an agent listens there, or that it serves claims. not_found without the directory.
  [[nodiscard]] static Result<InstanceLock> take(const std::string& directory, Mode mode = Mode::device_plugin);

  // The directory at that path is the one that is locked.
  [[nodiscard]] bool is_of(const std::string& directory) const;

 private:
  explicit InstanceLock(Fd directory) : directory_(std::move(directory)) {}
  Fd directory_;
};

struct LockHolder {
  InstanceLock::Mode mode = InstanceLock::Mode::device_plugin;
  std::string pid;  // of one, where several share the lock
};

// Holder of the lock of that directory, by /proc/locks: processes of this pid namespace. Takes no lock, so that an
// agent that starts meanwhile is not disturbed. nullopt: no visible holder.
[[nodiscard]] std::optional<LockHolder> lock_holder(const std::string& directory);

}  // namespace neuron::plugin
