#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/base/bounded_calls.h"
#include "agent/base/clock.h"
#include "plugin/kubelet/instance_lock.h"

namespace neuron::plugin::dra {

// Keeps a device plugin of ours off this node for as long as it lives, and finds one that is there: both modes would
// give the same hardware away (docs/adr/0011-dra.md). A directory that is not there is locked once it is. One thread.
class ModeGuard {
 public:
  static constexpr std::chrono::milliseconds kBudget{1000};  // of one look at the directory

  // `directory`: the kubelet's device-plugins. `calls`: for looks at it, which may hang. Both must outlive it.
  ModeGuard(std::string directory, const Clock& clock, const BoundedCalls& calls)
      : directory_(std::move(directory)), clock_(clock), calls_(calls) {}

  // Once nothing is wrong nothing is returned. Errors: failed_precondition when a device plugin of ours is there, with
  // who; others, when it cannot be told, in words that stay the same. While the directory hangs the answer is the one
  // before. Looks every 2 s at most.
  [[nodiscard]] std::optional<Error> look();
  [[nodiscard]] SteadyTime next() const { return look_at_; }  // when to look again

 private:
  const std::string directory_;
  const Clock& clock_;
  const BoundedCalls& calls_;
  std::shared_ptr<const InstanceLock> lock_;  // shared with looks that hang
  std::optional<Error> error_;
  SteadyTime look_at_{};
};

}  // namespace neuron::plugin::dra
