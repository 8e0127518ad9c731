#include "plugin/kubelet/socket_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace neuron::plugin {
namespace {

constexpr std::string_view kAgentPrefix = "neuron-agent-";
constexpr std::string_view kSuffix = ".sock";

// The process that has this directory locked: /proc/locks names it by device and inode, and leaves out locks of
// processes that this pid namespace does not have. `besides`: a pid that is not meant. nullopt when it is not there.
std::optional<LockHolder> holder_of(int directory, const std::string& besides = "") {
  struct stat info {};
  if (::fstat(directory, &info) != 0) return std::nullopt;
  const std::string place = fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);  // "1: FLOCK  ADVISORY  WRITE 4242 00:2a:123456 0 EOF"
    std::string number, kind, mode, access, pid, where;
    if (words >> number >> kind >> mode >> access >> pid >> where && kind == "FLOCK" && where == place &&
        pid != besides) {
      return LockHolder{access == "READ" ? InstanceLock::Mode::claims : InstanceLock::Mode::device_plugin, pid};
    }
  }
  return std::nullopt;
}

std::string describe_holder(int directory, const std::string& path) {
  if (const auto holder = holder_of(directory)) return "pid " + holder->pid;
  std::string sockets;
  for (const std::string& name : sockets_in(path)) {
    if (!is_agent_socket(name)) continue;
    if (socket_state(path + "/" + name) == SocketState::listening) sockets += " " + name;
  }
  return "of another container or pod; its pid is not visible here, its sockets are" +
         (sockets.empty() ? std::string(" not there yet") : sockets);
}

std::string describe_sharer(int directory) {
  const auto holder = holder_of(directory, std::to_string(::getpid()));  // it shares the lock at this moment
  return holder ? "pid " + holder->pid : "of another container or pod; its pid is not visible here";
}

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

Result<InstanceLock> InstanceLock::take(const std::string& directory, Mode mode) {
  Fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return fail(error_from_errno(errno, directory));
  const auto try_as = [&opened](int kind) { return ::flock(opened.get(), kind | LOCK_NB) == 0; };
  if (try_as(mode == Mode::claims ? LOCK_SH : LOCK_EX)) return InstanceLock(std::move(opened));
  if (errno != EWOULDBLOCK) return fail(error_from_errno(errno, "locking " + directory));
  if (mode == Mode::claims) {
    return fail(
        ErrorCode::failed_precondition,
        fmt::format("a neuron-agent in device-plugin mode ({}) already serves {}; a node runs one mode, exiting",
                    describe_holder(opened.get(), directory), directory));
  }
  if (try_as(LOCK_SH)) {  // so those that hold it share it, unless the only holder has just ended
    if (try_as(LOCK_EX)) return InstanceLock(std::move(opened));
    return fail(ErrorCode::failed_precondition,
                fmt::format("a neuron-agent in DRA mode ({}) already serves this node's claims; a node runs one mode, "
                            "exiting without changing {}",
                            describe_sharer(opened.get()), directory));
  }
  return fail(ErrorCode::unavailable, fmt::format("another neuron-agent ({}) already serves {}",
                                                  describe_holder(opened.get(), directory), directory));
}

bool InstanceLock::is_free(const std::string& directory) {
  const Fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return !opened.valid() || ::flock(opened.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

std::optional<LockHolder> lock_holder(const std::string& directory) {
  const Fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.valid() ? holder_of(opened.get()) : std::nullopt;
}

bool InstanceLock::is_of(const std::string& directory) const {
  struct stat held {};
  struct stat there {};
  if (::fstat(directory_.get(), &held) != 0) return false;
  if (::stat(directory.c_str(), &there) != 0) return errno != ENOENT;
  return held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

}  // namespace neuron::plugin
