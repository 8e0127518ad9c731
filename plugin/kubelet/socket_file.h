#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/result.h"
#include "agent/model/resource.h"

namespace neuron::plugin {

// The socket files of the kubelet's device-plugins directory: their owners, and whether a process listens on them. Free
// functions, any thread; none blocks for longer than a local file system does.

inline constexpr std::string_view kKubeletSocket = "kubelet.sock";

// "neuron-agent-<resource>-<instance>-<number>.sock". `instance` is unique per process, `number` within it, because a
// name is never used twice (plugin_server.h).
[[nodiscard]] std::string endpoint_name(model::Resource resource, std::string_view instance, int number);

// The name is one that some neuron-agent gave.
[[nodiscard]] bool is_agent_socket(std::string_view name);
// The name is one that the process called `instance` gave.
[[nodiscard]] bool is_socket_of(std::string_view name, std::string_view instance);
// Another plugin's: any "*.sock" but the kubelet's and those of `instance`.
[[nodiscard]] bool is_foreign_socket(std::string_view name, std::string_view instance);

// dead: the file is there, its server is not (kill -9 leaves that). unknown: no socket, or no permission.
enum class SocketState { listening, dead, missing, unknown };
// Connects and closes at once; nothing is sent.
[[nodiscard]] SocketState socket_state(const std::string& path);

// File names of all sockets in `directory`, sorted; empty when it cannot be read.
[[nodiscard]] std::vector<std::string> sockets_in(const std::string& directory);

// Removes sockets left behind by killed agents: those with an agent's name on which no process listens. To be called
// while the directory is locked (InstanceLock), as a socket looks dead between bind and listen. Returns their names.
std::vector<std::string> remove_dead_agent_sockets(const std::string& directory);

// Held by the one agent that serves a kubelet as a device plugin, or by all instances of the one driver that serves it
// claims: a node runs one mode (docs/adr/0011-dra.md). Until the process ends; a crash releases it. It is a lock of the
// kubelet's device-plugins directory itself, as kubelets before 1.33 delete every file in it when they start; when
// another directory has come to the same path, take a new lock. While it is held, inotify does not report the removal
// of the directory (SocketWatch).
class InstanceLock {
 public:
  enum class Mode {
    device_plugin,  // for itself alone
    claims,         // beside others of the same mode, as in a rolling update
  };

  // Errors, each with the holder's pid if it lives in this pid namespace, else with the sockets on which an agent
  // listens there: unavailable when a process in device-plugin mode holds what this one wants for itself alone;
  // failed_precondition when the holder is in the other mode. not_found without the directory.
  [[nodiscard]] static Result<InstanceLock> take(const std::string& directory, Mode mode = Mode::device_plugin);

  // take() in device-plugin mode would not fail for a holder: there is none, or no directory. Cheap, for polling.
  [[nodiscard]] static bool is_free(const std::string& directory);

  // The directory at that path is the one that is locked, or cannot be read now.
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
