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

KubeletDirectory::KubeletDirectory(std::string path, const Clock& clock)
    : path_(std::move(path)), clock_(clock), open_at_(clock.now()) {}

KubeletDirectory::Changes KubeletDirectory::read_changes() {
  Changes changes;
  if (stands_at_ && *stands_at_ <= clock_.now()) {
    stands_at_ = clock_.now() + kStandsEvery;
    if (watch_->state() != SocketWatch::State::stands) lose();
  }
  if (open_at_ && *open_at_ <= clock_.now()) open(changes);
  if (watch_ && !changes.end) read(changes);
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

void KubeletDirectory::open(Changes& changes) {
  open_at_.reset();
  auto watch = SocketWatch::open(path_);
  if (!watch) {
    if (error_ != watch.error().message) {
      spdlog::warn("kubelet directory unavailable, waiting: {}", watch.error().message);
    }
    error_ = watch.error().message;
    open_at_ = clock_.now() + kRetry;
    return;
  }
  changes.end = watch->state() == SocketWatch::State::dead ? dead_mount("removed") : lock();
  if (changes.end || !lock_) return;
  if (!error_.empty()) spdlog::info("kubelet directory available again dir={}", path_);
  error_.clear();
  watch_ = *std::move(watch);
  stands_at_ = clock_.now() + kStandsEvery;
  changes.usable = true;
  for (const std::string& name : sockets_in(path_)) {
    if (socket_state(path_ + "/" + name) != SocketState::dead) changes.sockets.push_back({Kind::appeared, name});
  }
}

KubeletDirectory::End KubeletDirectory::dead_mount(std::string_view what) const {
  spdlog::error("kubelet directory mount is stale, exiting for a restart with a fresh mount dir={} cause={}", path_,
                what);
  return End::dead_mount;
}

// Afterwards the lock is held, or the directory has gone meanwhile and is waited for, or the agent has to end.
std::optional<KubeletDirectory::End> KubeletDirectory::lock() {
  auto lock = InstanceLock::take(path_);
  if (!lock && lock.error().code == ErrorCode::not_found) {
    open_at_ = clock_.now() + kRetry;
    return std::nullopt;
  }
  if (!lock) {
    spdlog::error("kubelet directory not locked: {}", lock.error().message);
    return lock.error().code == ErrorCode::failed_precondition ? End::other_agent : End::failed;
  }
  lock_ = *std::move(lock);
  for (const std::string& name : remove_dead_agent_sockets(path_)) {
    spdlog::info("removed stale socket={}", name);
  }
  return std::nullopt;
}

void KubeletDirectory::lose() {
  spdlog::warn("kubelet directory removed or watch overflowed, reopening dir={}", path_);
  watch_.reset();
  stands_at_.reset();
  lock_.reset();  // it is that directory's
  open_at_ = clock_.now();
}

void KubeletDirectory::read(Changes& changes) {
  for (auto& event : watch_->read_events()) {
    const bool stands = watch_->state() == SocketWatch::State::stands;
    if (event.kind == Kind::directory_moved && stands) {
      changes.end = dead_mount("renamed");
      return;
    }
    if (event.kind == Kind::directory_moved || event.kind == Kind::directory_lost ||
        (event.kind == Kind::vanished && !stands)) {
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
