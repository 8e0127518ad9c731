#include "plugin/kubelet/socket_file.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "agent/base/fd.h"

namespace neuron::plugin {
namespace {

constexpr std::string_view kAgentPrefix = "neuron-agent-";
constexpr std::string_view kSuffix = ".sock";

}  // namespace

std::string endpoint_name(model::Resource resource, std::string_view instance, int number) {
  return fmt::format("{}{}-{}-{}{}", kAgentPrefix, model::short_name(resource), instance, number, kSuffix);
}

bool is_agent_socket(std::string_view name) {
  return name.starts_with(kAgentPrefix) && name.ends_with(kSuffix);
}

bool is_socket_of(std::string_view name, std::string_view instance) {
  return is_agent_socket(name) && name.find(fmt::format("-{}-", instance)) != std::string_view::npos;
}

bool is_foreign_socket(std::string_view name, std::string_view instance) {
  return name.ends_with(kSuffix) && name != kKubeletSocket && !is_socket_of(name, instance);
}

SocketState socket_state(const std::string& path) {
  sockaddr_un address{};
  if (path.size() >= sizeof(address.sun_path)) return SocketState::unknown;
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return SocketState::unknown;
  // EAGAIN: its queue of connections is full, so there is a listener.
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 || errno == EAGAIN) {
    return SocketState::listening;
  }
  if (errno == ENOENT) return SocketState::missing;
  if (errno != ECONNREFUSED) return SocketState::unknown;
  std::error_code error;  // a file that is no socket refuses as well
  return std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::socket
             ? SocketState::dead
             : SocketState::unknown;
}

std::vector<std::string> sockets_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    // By the type in the directory's own entry: another file there, as the checkpoint, may be one that hangs.
    if (!at->is_symlink(ignored) && at->is_socket(ignored)) {
      names.push_back(at->path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> remove_dead_agent_sockets(const std::string& directory) {
  std::vector<std::string> removed;
  for (std::string& name : sockets_in(directory)) {
    const std::string path = directory + "/" + name;
    if (!is_agent_socket(name) || socket_state(path) != SocketState::dead) continue;
    if (::unlink(path.c_str()) == 0) removed.push_back(std::move(name));
  }
  return removed;
}

}  // namespace neuron::plugin
