#include "plugin/kubelet/instance_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin {
namespace {

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
  if (try_as(LOCK_SH)) {  // so those that hold it share it
    return fail(ErrorCode::failed_precondition,
                fmt::format("a neuron-agent in DRA mode ({}) already serves this node's claims; a node runs one mode, "
                            "exiting without changing {}",
                            describe_sharer(opened.get()), directory));
  }
  return fail(ErrorCode::failed_precondition, fmt::format("another neuron-agent ({}) already serves {}, exiting",
                                                          describe_holder(opened.get(), directory), directory));
}

std::optional<LockHolder> lock_holder(const std::string& directory) {
  const Fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.valid() ? holder_of(opened.get()) : std::nullopt;
}

bool InstanceLock::is_of(const std::string& directory) const {
  struct stat held {};
  struct stat there {};
  return ::fstat(directory_.get(), &held) == 0 && ::stat(directory.c_str(), &there) == 0 &&
         held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

}  // namespace neuron::plugin
