#include "plugin/dra/mode_guard.h"

#include <chrono>

namespace neuron::plugin::dra {

std::optional<Error> ModeGuard::look() {
  constexpr std::chrono::seconds kEvery{2};
  const SteadyTime now = clock_.now();
  if (now < look_at_) return error_;
  look_at_ = now + kEvery;
  if (lock_ && lock_->is_of(directory_)) return std::nullopt;
  lock_.reset();  // it is another directory's
  error_.reset();
  auto lock = InstanceLock::take(directory_, InstanceLock::Mode::claims);
  if (lock) {
    lock_ = *std::move(lock);
  } else if (lock.error().code != ErrorCode::not_found) {
    error_ = std::move(lock).error();
  }
  return error_;
}

}  // namespace neuron::plugin::dra
