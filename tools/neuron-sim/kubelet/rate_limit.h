#pragma once

#include <optional>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "tools/neuron-sim/kubelet/options.h"

namespace neuron::sim {

// A token bucket that starts full. Thread-safe.
class TokenBucket {
 public:
  explicit TokenBucket(std::optional<RateLimit> limit) : limit_(limit), tokens_(limit ? limit->burst : 0) {}

  // Takes a token if there is one at `now`; always true without a limit.
  [[nodiscard]] bool take(SteadyTime now);

 private:
  const std::optional<RateLimit> limit_;
  Mutex mutex_;
  double tokens_ GUARDED_BY(mutex_);
  std::optional<SteadyTime> last_ GUARDED_BY(mutex_);
};

}  // namespace neuron::sim
