#include "plugin/dra/serve/mode_guard.h"

#include <chrono>
#include <utility>

namespace neuron::plugin::dra {

std::optional<Error> ModeGuard::look() {
  constexpr std::chrono::seconds kEvery{2};
  const SteadyTime now = clock_.now();
  if (now < look_at_) return error_;
  look_at_ = now + kEvery;
  if (lock_) {
    const auto is_its = calls_.run([lock = lock_, directory = directory_] { return lock->is_of(directory); }, kBudget);
    if (is_its.value_or(true)) return std::nullopt;
  }
  lock_.reset();  // it is another directory's
  auto lock = calls_.run([directory = directory_] { return InstanceLock::take(directory, InstanceLock::Mode::claims); },
                         kBudget);
  if (!lock) return error_;
  error_.reset();
  if (*lock) {
    lock_ = std::make_shared<const InstanceLock>(**std::move(lock));
  } else if (lock->error().code != ErrorCode::not_found) {
    error_ = std::move(*lock).error();
  }
  return error_;
}

}  // namespace neuron::plugin::dra
