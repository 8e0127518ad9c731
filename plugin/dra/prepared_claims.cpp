#include "plugin/dra/prepared_claims.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/fd.h"

namespace neuron::plugin::dra {
namespace {

Result<Fd> open_lock(const std::string& directory, const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  Fd lock(::open(path.c_str(), kFlags, 0600));
  if (!lock.valid() && errno == ENOENT) {
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) return fail(error_from_errno(error.value(), directory));
    lock = Fd(::open(path.c_str(), kFlags, 0600));
  }
  if (!lock.valid()) return fail(error_from_errno(errno, path));
  return lock;
}

// Whether the locked file is still the one at its path: somebody may have emptied the directory meanwhile.
bool is_at(const Fd& file, const std::string& path) {
  struct stat held {
  }, there{};
  return ::fstat(file.get(), &held) == 0 && ::stat(path.c_str(), &there) == 0 && held.st_ino == there.st_ino &&
         held.st_dev == there.st_dev;
}

// Once at least, also when `until` has passed.
Result<Fd> take_lock(const std::string& directory, SteadyTime until, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kAgain{2};
  const std::string path = directory + "/claims.lock";
  for (;;) {
    TRY_ASSIGN(Fd lock, open_lock(directory, path));
    while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return fail(error_from_errno(errno, "locking " + path));
      if (SystemClock().now() >= until) {
        return fail(ErrorCode::unavailable,
                    "another instance of the driver holds " + path + " for " + std::to_string(patience.count()) +
                        " ms; it is tried again. If that lasts, delete the older pod of the driver on this node");
      }
      std::this_thread::sleep_for(kAgain);
    }
    if (is_at(lock, path)) return lock;
  }
}

}  // namespace

PreparedClaims::PreparedClaims(Options options, ClaimsFile::Rebuild rebuild)
    : options_(std::move(options)), file_(options_.directory + "/claims.json", options_.boot_id, std::move(rebuild)) {}

Result<void> PreparedClaims::edit(const Work& work) {
  // From here on, as the kubelet waits: first behind others of this process, then for the other instance.
  const SteadyTime until = SystemClock().now() + options_.patience;
  const MutexLock lock(mutex_);
  TRY_ASSIGN(const Fd file_lock, take_lock(options_.directory, until, options_.patience));
  TRY(file_.read());
  if (const std::string news = file_.take_news(); !news.empty()) spdlog::warn("claims: {}", news);
  return work(file_);
}

}  // namespace neuron::plugin::dra
