#include "plugin/kubelet/kubelet_directory.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "plugin/kubelet/checkpoint.h"
#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;
using Kind = SocketWatch::Event::Kind;

constexpr milliseconds kRetry{250};
constexpr milliseconds kStandsEvery{2000};  // one stat

}  // namespace

// Result of one attempt to open the directory.
struct KubeletDirectory::Opened {
  Result<std::shared_ptr<SocketWatch>> watch;
  bool is_dead = false;
  std::optional<Result<InstanceLock>> lock{};
  std::vector<std::string> removed{};  // sockets of agents that were killed
  std::vector<std::string> sockets{};  // all others on which something listens
};

KubeletDirectory::KubeletDirectory(std::string path, const Clock& clock, const BoundedCalls& calls)
    : path_(std::move(path)), clock_(clock), calls_(calls), open_at_(clock.now()) {}

KubeletDirectory::Changes KubeletDirectory::read_changes() {
  Changes changes;
  if (stands_at_ && *stands_at_ <= clock_.now()) {
    stands_at_ = clock_.now() + kStandsEvery;
    if (!stands()) lose();
  }
  if (open_at_ && *open_at_ <= clock_.now()) open(changes);
  if (watch_ && !changes.end) read(changes);
  if (calls_.hangs()) {
    has_hung_ = true;
  } else if (watch_ && std::exchange(has_hung_, false)) {
    changes.usable = true;  // what changed meanwhile could not be looked at
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
bool KubeletDirectory::stands() const {
  const auto state = calls_.run([watch = watch_] { return watch->state(); }, kBudget);
  return state.value_or(SocketWatch::State::stands) == SocketWatch::State::stands;
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

void KubeletDirectory::open(Changes& changes) {
  open_at_.reset();
  auto opened = calls_.run([path = path_] { return open_at(path); }, kBudget);
  if (!opened) {
    open_at_ = clock_.now() + kRetry;
    return;
  }
  if (!opened->watch) {
    const std::string& error = opened->watch.error().message;
    if (error_ != error) spdlog::warn("kubelet directory unavailable, waiting: {}", error);
    error_ = error;
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

KubeletDirectory::End KubeletDirectory::dead_mount(std::string_view what) const {
  spdlog::error("kubelet directory mount is stale, exiting for a restart with a fresh mount dir={} cause={}", path_,
                what);
  return End::dead_mount;
}

// Afterwards the lock is held, or the directory has gone meanwhile and is waited for, or the agent has to end.
std::optional<KubeletDirectory::End> KubeletDirectory::take_lock(Result<InstanceLock> lock) {
  if (!lock && lock.error().code == ErrorCode::not_found) {
    open_at_ = clock_.now() + kRetry;
    return std::nullopt;
  }
  if (!lock) {
    spdlog::error("kubelet directory not locked: {}", lock.error().message);
    return lock.error().code == ErrorCode::failed_precondition ? End::other_agent : End::failed;
  }
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
    if (event.kind == Kind::directory_moved && stands()) {
      changes.end = dead_mount("renamed");
      return;
    }
    if (event.kind == Kind::directory_moved || event.kind == Kind::directory_lost ||
        (event.kind == Kind::vanished && !stands())) {
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
