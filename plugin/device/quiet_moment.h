#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "agent/base/clock.h"

namespace neuron::plugin {

// The supervisor's two quiet moments; after which time an answer, or a question that failed, is followed by List; and
// how often List is called while a unit is withheld from one resource because its silicon is held through another: the
// kubelet tells nobody that a container has ended.
inline constexpr std::chrono::milliseconds kPublishDistance{250};  // a new list after the last call of an admission
inline constexpr std::chrono::milliseconds kListDistance{100};     // List, which races with an allocation in flight
inline constexpr std::chrono::milliseconds kQuietPatience{3000};
inline constexpr std::chrono::milliseconds kOverslept{50};  // so late a timer tells that the process did not run
inline constexpr std::chrono::milliseconds kAskAfterAllocate{500};
inline constexpr std::chrono::milliseconds kAskAfterFailure{1000};
inline constexpr std::chrono::milliseconds kAskWhileWithheld{500};

// When something may be done that must not fall into an admission of the kubelet: once nobody has called for
// `distance`, but at most `patience` after it was wished for, as a node that is never quiet must not wait for ever.
// Plain arithmetic on times; one thread.
class QuietMoment {
 public:
  constexpr QuietMoment(std::chrono::milliseconds distance, std::chrono::milliseconds patience)
      : distance_(distance), patience_(patience) {}

  // Wishes for it, not before `earliest`, which replaces what an older wish said; patience counts from the first one.
  void want(SteadyTime earliest) {
    since_ = std::min(since_.value_or(earliest), earliest);
    at_ = std::min(earliest, *since_ + patience_);
    next_.reset();
  }

  // The process has not run for a while, stopped or starved: calls of the kubelet may lie unread, so this is no quiet
  // moment, and patience leaves time for what has piled up. Not for ever: a machine may starve us all the time.
  void woke(SteadyTime now) {
    constexpr int kMostWakes = 10;
    constexpr int kDistancesForBacklog = 5;
    if (!since_ || ++wakes_ > kMostWakes) return;
    since_ = std::max(*since_, now + kDistancesForBacklog * distance_ - patience_);
    at_ = std::max(*at_, now + distance_);
    next_.reset();
  }

  void drop() {
    since_.reset();
    at_.reset();
    next_.reset();
    wakes_ = 0;
  }

  // True once: now is the moment. `last_call`: the newest call of the kubelet; `busy`: an admission is not over, so
  // only patience counts until it is.
  [[nodiscard]] bool due(SteadyTime now, SteadyTime last_call, bool busy) {
    if (!since_) return false;
    const SteadyTime most = *since_ + patience_;
    const SteadyTime quiet = std::min(std::max(*at_, last_call + distance_), most);
    next_ = busy ? most : quiet;
    if (now < *next_) return false;
    drop();
    return true;
  }

  // When to ask due() again, if anything is wished for. Sooner when what made it busy is over.
  [[nodiscard]] std::optional<SteadyTime> next() const { return next_ ? next_ : at_; }

 private:
  std::chrono::milliseconds distance_;
  std::chrono::milliseconds patience_;
  std::optional<SteadyTime> since_;
  std::optional<SteadyTime> at_;
  std::optional<SteadyTime> next_;
  int wakes_ = 0;
};

}  // namespace neuron::plugin
