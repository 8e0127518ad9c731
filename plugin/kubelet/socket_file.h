#pragma once

#include <string>
#include <string_view>
#include <vector>

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

// dead: the file is there, its server is not (kill -9 leaves that). unknown: no socket, or not allowed to look.
enum class SocketState { listening, dead, missing, unknown };
// Connects and closes at once; nothing is sent.
[[nodiscard]] SocketState socket_state(const std::string& path);

// File names of all sockets in `directory`, sorted; empty when it cannot be read.
[[nodiscard]] std::vector<std::string> sockets_in(const std::string& directory);

// Removes sockets left behind by killed agents: those with an agent's name on which no process listens. To be called
// while the directory is locked (instance_lock.h), as a socket looks dead between bind and listen. Returns their names.
std::vector<std::string> remove_dead_agent_sockets(const std::string& directory);

}  // namespace neuron::plugin
