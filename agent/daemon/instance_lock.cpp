#include "agent/daemon/instance_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <cerrno>

#include "agent/base/parse.h"

namespace neuron::daemon {

Result<InstanceLock> InstanceLock::take(const std::string& directory) {
  const std::string path = directory + "/neuron-agent.lock";
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!file.valid()) return fail(error_from_errno(errno, path));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(error_from_errno(errno, "locking " + path));
    std::array<char, 32> pid{};
    const ssize_t got = ::pread(file.get(), pid.data(), pid.size() - 1, 0);
    const std::string who =
        got > 0 ? " (pid " + printable(trim({pid.data(), static_cast<std::size_t>(got)})) + ")" : "";
    return fail(ErrorCode::failed_precondition,
                "another neuron-agent" + who + " already serves " + directory + "; it is left alone, this one ends");
  }
  const std::string own = std::to_string(::getpid()) + "\n";
  // The pid is for people; on a full disk the lock holds without it.
  if (::ftruncate(file.get(), 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(file.get(), own.data(), own.size(), 0);
  }
  return InstanceLock(std::move(file));
}

}  // namespace neuron::daemon
