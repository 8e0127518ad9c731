#include "plugin/kubelet/kubelet_directory.h"

#include <spdlog/spdlog.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "plugin/kubelet/checkpoint.h"
#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;
using Kind = SocketWatch::Event::Kind;

constexpr milliseconds kRetry{250};
constexpr milliseconds kStandsEvery{2000};  // one stat
constexpr milliseconds kHandOver{20};       // between two checks of a lock that another agent holds

// The user's share of inotify, the process' descriptors or the kernel's memory; not the directory.
bool is_exhausted(const Error& error) {
  return error.os_errno == EMFILE || error.os_errno == ENFILE || error.os_errno == ENOMEM || error.os_errno == ENOSPC;
}

}  // namespace

Result<SocketWatch> SocketWatch::open(const std::string& directory, Means means) {
  const auto place = place_of(directory);
  if (!place) return fail(error_from_errno(errno, "watching " + directory));
  SocketWatch watch(directory, place);
  const Result<void> begun =
      means == Means::inotify ? watch.begin_inotify() : fail(error_from_errno(EMFILE, "inotify"));
  if (begun) return watch;
  if (!is_exhausted(begun.error())) return fail(begun.error());
  watch.polling_because_ = begun.error().message;
  if (auto files = watch.list()) watch.files_ = *std::move(files);
  return watch;
}

// Errors: those of is_exhausted() while the kernel grants none; others for the directory.
Result<void> SocketWatch::begin_inotify() {
  Fd inotify(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify.valid()) {
    return fail(error_from_errno(
        errno, "no inotify instance left for this user; raise the sysctl fs.inotify.max_user_instances"));
  }
  constexpr std::uint32_t kMask =
      IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  if (inotify_add_watch(inotify.get(), directory_.c_str(), kMask) < 0) {
    const int reason = errno;
    const bool no_watch = reason == ENOSPC || reason == ENOMEM;
    return fail(error_from_errno(
        reason, no_watch ? "no inotify watch left for this user; raise the sysctl fs.inotify.max_user_watches"
                         : "watching " + directory_));
  }
  inotify_ = std::move(inotify);
  polling_because_.clear();
  return {};
}

std::optional<SocketWatch::Place> SocketWatch::place_of(const std::string& directory) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return std::nullopt;
  return Place{info.st_dev, info.st_ino};
}

SocketWatch::State SocketWatch::state() const {
  struct stat info {};
  if (::stat(directory_.c_str(), &info) != 0) return errno == ENOENT ? State::gone : State::unread;
  if (place_ != Place{info.st_dev, info.st_ino}) return State::replaced;
  return info.st_nlink == 0 ? State::dead : State::stands;
}

bool SocketWatch::may_stand() const {
  const State now = state();
  return now == State::stands || now == State::unread;
}

std::optional<SocketWatch::Files> SocketWatch::list() const {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  Files files;
  std::error_code error;
  std::filesystem::directory_iterator at(directory_, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    struct stat info {};
    if (::lstat(at->path().c_str(), &info) != 0) {
      if (errno == ENOENT) continue;
      return std::nullopt;
    }
    files[at->path().filename()] = {info.st_ino, info.st_ctim.tv_sec * kNanoseconds + info.st_ctim.tv_nsec};
  }
  if (error) return std::nullopt;
  return files;
}

// Of several writes of one file since the last comparison one is seen.
void SocketWatch::compare(std::vector<Event>& events) {
  const State now_there = state();
  if (now_there == State::gone || now_there == State::replaced) {
    return events.push_back({Event::Kind::directory_lost, ""});
  }
  auto now = list();
  if (!now) return;
  for (const auto& [name, stamp] : files_) {
    if (!now->contains(name)) events.push_back({Event::Kind::vanished, name});
  }
  for (const auto& [name, stamp] : *now) {
    const auto before = files_.find(name);
    if (before == files_.end() || before->second != stamp) events.push_back({Event::Kind::appeared, name});
  }
  files_ = *std::move(now);
}

std::vector<SocketWatch::Event> SocketWatch::read_events() {
  std::vector<Event> events;
  if (inotify_.valid()) {
    read_inotify(events);
    return events;
  }
  static_cast<void>(begin_inotify());  // before the list, so that nothing is missed between the two
  compare(events);
  return events;
}

void SocketWatch::read_inotify(std::vector<Event>& events) {
  alignas(inotify_event) std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) return;
    for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* name = buffer.data() + at + sizeof(event);
      at += sizeof(event) + event.len;
      if ((event.mask & IN_MOVE_SELF) != 0) {
        events.push_back({Event::Kind::directory_moved, ""});
      } else if ((event.mask & (IN_DELETE_SELF | IN_IGNORED | IN_Q_OVERFLOW | IN_UNMOUNT)) != 0) {
        events.push_back({Event::Kind::directory_lost, ""});
      } else if (event.len > 0) {
        const bool appeared = (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
        events.push_back(
            {appeared ? Event::Kind::appeared : Event::Kind::vanished, std::string(name, strnlen(name, event.len))});
      }
    }
  }
}

// Result of one attempt to open the directory.
struct KubeletDirectory::Opened {
  Result<std::shared_ptr<SocketWatch>> watch;
  bool is_dead = false;
  std::optional<Result<InstanceLock>> lock{};
  std::vector<std::string> removed{};  // sockets of agents that were killed
  std::vector<std::string> sockets{};  // all others on which something listens
};

KubeletDirectory::KubeletDirectory(std::string path, const Clock& clock, const BoundedCalls& calls,
                                   WhenServed when_served)
    : path_(std::move(path)), clock_(clock), calls_(calls), when_served_(when_served), open_at_(clock.now()) {}

KubeletDirectory::Changes KubeletDirectory::read_changes() {
  Changes changes;
  if (stands_at_ && *stands_at_ <= clock_.now()) {
    stands_at_ = clock_.now() + kStandsEvery;
    if (!may_stand()) lose();
  }
  if (open_at_ && *open_at_ <= clock_.now()) open(changes);
  if (watch_ && !changes.end) read(changes);
  if (calls_.hangs()) {
    has_hung_ = true;
  } else if (watch_ && std::exchange(has_hung_, false)) {
    changes.usable = true;  // what changed meanwhile could not be read
  }
  say_means();
  return changes;
}

std::optional<SteadyTime> KubeletDirectory::next() const {
  if (open_at_) return open_at_;
  const bool polls = watch_ && watch_->fd() < 0;
  return polls ? clock_.now() + SocketWatch::kPollEvery : stands_at_;
}

// Logs when inotify is refused, and when it is granted again.
void KubeletDirectory::say_means() {
  if (!watch_ || watch_->polling_because() == polling_because_) return;
  polling_because_ = watch_->polling_because();
  if (polling_because_.empty()) {
    spdlog::info("kubelet directory watch restored dir={}", path_);
  } else {
    spdlog::warn("kubelet directory not watched, polling dir={} interval_ms={}: {}", path_,
                 SocketWatch::kPollEvery.count(), polling_because_);
  }
}

// Of a directory that hangs it is not known, and taken to be so.
bool KubeletDirectory::may_stand() const {
  return calls_.run([watch = watch_] { return watch->may_stand(); }, kBudget).value_or(true);
}

// On a thread that may hang.
KubeletDirectory::Opened KubeletDirectory::open_at(const std::string& path) {
  Opened opened{
      SocketWatch::open(path).map([](SocketWatch watch) { return std::make_shared<SocketWatch>(std::move(watch)); })};
  if (!opened.watch) return opened;
  opened.is_dead = (*opened.watch)->state() == SocketWatch::State::dead;
  if (opened.is_dead) return opened;
  opened.lock = InstanceLock::take(path);
  if (!*opened.lock) return opened;
  opened.removed = remove_dead_agent_sockets(path);
  for (std::string& name : sockets_in(path)) {
    if (socket_state(path + "/" + name) != SocketState::dead) opened.sockets.push_back(std::move(name));
  }
  return opened;
}

std::optional<milliseconds> KubeletDirectory::waited() const {
  if (!waits_since_) return std::nullopt;
  return std::chrono::duration_cast<milliseconds>(clock_.now() - *waits_since_);
}

void KubeletDirectory::open(Changes& changes) {
  open_at_.reset();
  if (waits_since_ && !calls_.run([path = path_] { return InstanceLock::is_free(path); }, kBudget).value_or(false)) {
    open_at_ = clock_.now() + kHandOver;
    return;
  }
  auto opened = calls_.run([path = path_] { return open_at(path); }, kBudget);
  if (!opened) {
    open_at_ = clock_.now() + kRetry;
    return;
  }
  if (!opened->watch) {
    const std::string& error = opened->watch.error().message;
    if (error_ != error) spdlog::warn("kubelet directory unavailable, waiting: {}", error);
    error_ = error;
    waits_since_.reset();
    open_at_ = clock_.now() + kRetry;
    return;
  }
  changes.end = opened->is_dead ? dead_mount("removed") : take_lock(*std::move(opened->lock));
  if (changes.end || !lock_) return;
  for (const std::string& name : opened->removed) {
    spdlog::info("removed stale socket={}", name);
  }
  if (!error_.empty()) spdlog::info("kubelet directory available again dir={}", path_);
  error_.clear();
  watch_ = *std::move(opened->watch);
  stands_at_ = clock_.now() + kStandsEvery;
  changes.usable = true;
  for (std::string& name : opened->sockets) changes.sockets.push_back({Kind::appeared, std::move(name)});
}

LoopEnd KubeletDirectory::dead_mount(std::string_view what) const {
  spdlog::error("kubelet directory mount is stale, exiting for a restart with a fresh mount dir={} cause={}", path_,
                what);
  return LoopEnd::dead_mount;
}

// Afterwards the lock is held, or the directory has gone meanwhile and is waited for, or the agent has to end.
std::optional<LoopEnd> KubeletDirectory::take_lock(Result<InstanceLock> lock) {
  if (!lock && lock.error().code == ErrorCode::not_found) {
    open_at_ = clock_.now() + kRetry;
    return std::nullopt;
  }
  const bool is_served = !lock && lock.error().code == ErrorCode::unavailable;
  if (is_served && when_served_ == WhenServed::wait) {
    if (!waits_since_) spdlog::info("waiting to take over: {}", lock.error().message);
    waits_since_ = waits_since_.value_or(clock_.now());
    open_at_ = clock_.now() + kHandOver;
    return std::nullopt;
  }
  if (!lock) {
    spdlog::error("kubelet directory not locked: {}", lock.error().message);
    return is_served || lock.error().code == ErrorCode::failed_precondition ? LoopEnd::other_agent : LoopEnd::failed;
  }
  if (const auto ms = waited()) spdlog::info("took over dir={} waited_ms={}", path_, ms->count());
  waits_since_.reset();
  when_served_ = WhenServed::end;
  lock_ = *std::move(lock);
  return std::nullopt;
}

void KubeletDirectory::lose() {
  spdlog::warn("kubelet directory removed or watch overflowed, reopening dir={}", path_);
  watch_.reset();
  stands_at_.reset();
  lock_.reset();  // it is that directory's
  open_at_ = clock_.now();
}

// inotify itself never hangs.
std::vector<SocketWatch::Event> KubeletDirectory::read_events() {
  if (watch_->fd() >= 0) return watch_->read_events();
  auto events = calls_.run([watch = watch_] { return watch->read_events(); }, kBudget);
  if (events) return *std::move(events);
  watch_.reset();  // the call that hangs has it
  stands_at_.reset();
  lock_.reset();
  open_at_ = clock_.now() + kRetry;
  return {};
}

void KubeletDirectory::read(Changes& changes) {
  for (auto& event : read_events()) {
    if (event.kind == Kind::directory_moved && may_stand()) {
      changes.end = dead_mount("renamed");
      return;
    }
    if (event.kind == Kind::directory_moved || event.kind == Kind::directory_lost ||
        (event.kind == Kind::vanished && !may_stand())) {
      changes = {};
      return lose();
    }
    const bool appeared = event.kind == Kind::appeared;
    if (event.name == kKubeletSocket) {
      changes.kubelet_appeared = changes.kubelet_appeared || appeared;
    } else if (event.name == kCheckpointName) {
      changes.checkpoints_written += appeared ? 1 : 0;
    } else {
      changes.sockets.push_back(std::move(event));
    }
  }
}

}  // namespace neuron::plugin
