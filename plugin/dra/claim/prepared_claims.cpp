#include "plugin/dra/claim/prepared_claims.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "agent/base/fd.h"

namespace neuron::plugin::dra {
namespace {

using std::chrono::milliseconds;

std::string lock_path(const std::string& directory) {
  return directory + "/claims.lock";
}

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

// Whether the locked file is still the one at its path: the directory may have been emptied meanwhile.
bool is_at(const Fd& file, const std::string& path) {
  struct stat held {
  }, there{};
  return ::fstat(file.get(), &held) == 0 && ::stat(path.c_str(), &there) == 0 && held.st_ino == there.st_ino &&
         held.st_dev == there.st_dev;
}

// `own`: for how long of the patience calls of this instance had the file.
Error not_had(const std::string& path, milliseconds patience, milliseconds own) {
  const auto shown = [](milliseconds time) { return std::to_string(time.count()) + " ms"; };
  if (own * 2 < patience) {
    return make_error(ErrorCode::unavailable,
                      "another instance of the driver holds " + path + " for " + shown(patience) +
                          "; retried automatically. If it persists, delete the older driver pod on this node");
  }
  return make_error(ErrorCode::unavailable,
                    "other calls of this instance held " + path + " for " + shown(own) + " of " + shown(patience) +
                        ", and another instance holds it now; retried automatically. If it persists, the disk is slow");
}

// Once at least, also when `until` has passed. nullopt: not had by then.
Result<std::optional<Fd>> take_lock(const std::string& directory, SteadyTime until) {
  constexpr milliseconds kAgain{2};
  const std::string path = lock_path(directory);
  for (;;) {
    TRY_ASSIGN(Fd lock, open_lock(directory, path));
    while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return fail(error_from_errno(errno, "locking " + path));
      if (SystemClock().now() >= until) return std::optional<Fd>();
      std::this_thread::sleep_for(kAgain);
    }
    if (is_at(lock, path)) return std::optional<Fd>(std::move(lock));
  }
}

}  // namespace

PreparedClaims::PreparedClaims(Options options, ClaimsFile::Rebuild rebuild)
    : options_(std::move(options)), file_(options_.directory + "/claims.json", options_.boot_id, std::move(rebuild)) {}

// Of one call: the file is its own until this ends.
class PreparedClaims::Turn {
 public:
  explicit Turn(PreparedClaims& claims) : claims_(claims) {}
  ~Turn() {
    const MutexLock lock(claims_.mutex_);
    claims_.turn_since_.reset();
    claims_.turn_ended_.notify_one();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  void has_lock(SteadyTime now) {
    const MutexLock lock(claims_.mutex_);
    claims_.turn_since_ = now;
  }

 private:
  PreparedClaims& claims_;
};

Result<void> PreparedClaims::take_turn() {
  const MutexLock lock(mutex_);
  while (turn_since_) {
    const SteadyTime until = *turn_since_ + options_.hang;
    if (SystemClock().now() >= until) {
      return fail(ErrorCode::unavailable,
                  "a call of this instance that has " + options_.directory +
                      "/claims.json has not returned for more than " + std::to_string(options_.hang.count()) +
                      " ms: the file system of that directory or of the CDI directory hangs; retried automatically");
    }
    turn_ended_.wait_until(mutex_, until);
  }
  turn_since_ = SystemClock().now();
  return {};
}

Result<void> PreparedClaims::edit(const Work& work) {
  // From here on, as the kubelet waits: first behind others of this process, then for the other instance.
  const SteadyTime begin = SystemClock().now();
  const SteadyDuration held_before = held_;
  TRY(take_turn());
  Turn turn(*this);
  TRY_ASSIGN(const auto file_lock, take_lock(options_.directory, begin + options_.patience));
  const SteadyTime now = SystemClock().now();
  if (!file_lock) {
    const SteadyDuration own = std::min(held_.load() - held_before, now - begin);
    return fail(not_had(lock_path(options_.directory), options_.patience, std::chrono::floor<milliseconds>(own)));
  }
  turn.has_lock(now);
  auto done = with_lock(work);
  held_ = held_.load() + (SystemClock().now() - now);
  return done;
}

Result<void> PreparedClaims::with_lock(const Work& work) {
  TRY(file_.read());
  if (const std::string news = file_.take_news(); !news.empty()) spdlog::warn("claims file recovered: {}", news);
  return work(file_);
}

}  // namespace neuron::plugin::dra
