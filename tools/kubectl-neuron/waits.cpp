#include "tools/kubectl-neuron/waits.h"

#include <utility>

namespace neuron::fleet {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Waits::Call::Call(Waits* waits, const std::string& command, milliseconds limit)
    : waits_(waits), command_(command), limit_(limit), since_(steady_clock::now()) {
  if (waits_ == nullptr) return;
  const MutexLock lock(waits_->mutex_);
  place_ = waits_->running_.insert(waits_->running_.end(), this);
  if (waits_->is_over_) return;
  if (!waits_->watcher_.joinable()) waits_->watcher_ = std::jthread([all = waits_] { all->watch(); });
  waits_->changed_.notify_all();
}

Waits::Call::~Call() {
  if (waits_ == nullptr) return;
  const MutexLock lock(waits_->mutex_);
  waits_->running_.erase(place_);
}

void Waits::watch() {
  const MutexLock lock(mutex_);
  while (!is_over_) {
    if (running_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    const Call& oldest = *running_.front();
    const SteadyTime due = oldest.since_ + patience_;
    if (steady_clock::now() < due) {
      changed_.wait_until(mutex_, due);
      continue;
    }
    is_over_ = true;
    say_(sentence_of(oldest.command_, running_.size() - 1, oldest.limit_));
  }
}

void Waits::end() {
  std::jthread ending;
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
    ending.swap(watcher_);
  }
}

std::string Waits::sentence_of(const std::string& command, std::size_t others, milliseconds limit) {
  return "waiting for " + command + (others > 0 ? " and " + std::to_string(others) + " more calls" : "") +
         ", at most " + words_of(limit);
}

std::string words_of(milliseconds time) {
  constexpr int kSecond = 1000;
  const bool is_whole = time.count() % kSecond == 0;
  return is_whole ? std::to_string(time.count() / kSecond) + " s" : std::to_string(time.count()) + " ms";
}

}  // namespace neuron::fleet
