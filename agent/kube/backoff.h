#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <stop_token>

namespace neuron::kube {

// How long to wait before another attempt: from a half to the whole of a time that doubles with every failure, by
// chance, so that the agents of a cluster do not come back together. Not synchronised.
class Backoff {
 public:
  using Milliseconds = std::chrono::milliseconds;

  Backoff(Milliseconds first, Milliseconds longest, unsigned seed = std::random_device{}())
      : first_(first), longest_(longest), next_(first), chance_(seed) {}

  [[nodiscard]] Milliseconds next() {
    const Milliseconds whole = next_;
    next_ = std::min(whole * 2, longest_);
    return Milliseconds(std::uniform_int_distribution<Milliseconds::rep>(whole.count() / 2, whole.count())(chance_));
  }
  void reset() { next_ = first_; }  // after a success

 private:
  Milliseconds first_;
  Milliseconds longest_;
  Milliseconds next_;
  std::minstd_rand chance_;
};

// Waits that long, or until `stop` is requested; a test may count instead (its thread must not spin, though: whoever
// waits is told to by a failure). Blocks.
using Wait = std::function<void(std::chrono::milliseconds, const std::stop_token&)>;

inline void wait_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  static_cast<void>(never.wait_for(lock, stop, time, [] { return false; }));
}

}  // namespace neuron::kube
