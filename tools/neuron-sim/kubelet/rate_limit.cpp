#include "tools/neuron-sim/kubelet/rate_limit.h"

#include <algorithm>
#include <chrono>

namespace neuron::sim {

bool TokenBucket::take(SteadyTime now) {
  if (!limit_) return true;
  MutexLock lock(mutex_);
  if (last_) {
    const double seconds = std::chrono::duration<double>(now - *last_).count();
    tokens_ = std::min(static_cast<double>(limit_->burst), tokens_ + seconds * limit_->per_second);
  }
  last_ = now;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace neuron::sim
