#include "plugin/kubelet/instance_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <fstream>
#include <sstream>

#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin {
namespace {

// The pid of the process that has this directory locked: /proc/locks names it by device and inode, and leaves out locks
// of processes that this pid namespace does not have. Empty when it is not there.
std::string pid_of_holder(int directory) {
  struct stat info {};
  if (::fstat(directory, &info) != 0) return "";
  const std::string place = fmt::format("{:02x}:{:02x}:{}", major(info.st_dev), minor(info.st_dev), info.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);  // "1: FLOCK  ADVISORY  WRITE 4242 00:2a:123456 0 EOF"
    std::string number, kind, mode, access, pid, where;
    if (words >> number >> kind >> mode >> access >> pid >> where && kind == "FLOCK" && where == place) return pid;
  }
  return "";
}

std::string describe_holder(int directory, const std::string& path) {
  const std::string pid = pid_of_holder(directory);
  if (!pid.empty()) return "pid " + pid;
  std::string sockets;
  for (const std::string& name : sockets_in(path)) {
    if (!is_agent_socket(name)) continue;
    if (socket_state(path + "/" + name) == SocketState::listening) sockets += " " + name;
  }
  return "of another container or pod; its pid is not visible here, its sockets are" +
         (sockets.empty() ? std::string(" not there yet") : sockets);
}

}  // namespace

Result<InstanceLock> InstanceLock::take(const std::string& directory) {
  Fd opened(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return fail(error_from_errno(errno, directory));
  if (::flock(opened.get(), LOCK_EX | LOCK_NB) == 0) return InstanceLock(std::move(opened));
  if (errno != EWOULDBLOCK) return fail(error_from_errno(errno, "locking " + directory));
  return fail(ErrorCode::failed_precondition,
              fmt::format("another neuron-agent ({}) already serves {}; it is left alone, this one ends",
                          describe_holder(opened.get(), directory), directory));
}

}  // namespace neuron::plugin
