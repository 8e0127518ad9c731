#pragma once

#include <optional>
#include <string>

#include "agent/base/clock.h"
#include "plugin/kubelet/instance_lock.h"

namespace neuron::plugin::dra {

// Keeps a device plugin of ours off this node for as long as it lives, and finds one that is there: both modes would
// give the same hardware away (docs/adr/0011-dra.md). A directory that is not there is locked once it is. One thread.
class ModeGuard {
 public:
  // `directory`: the kubelet's device-plugins. `clock` must outlive it.
  ModeGuard(std::string directory, const Clock& clock) : directory_(std::move(directory)), clock_(clock) {}

  // Once nothing is wrong nothing is returned. Errors: failed_precondition when a device plugin of ours is there, with
  // who; others, when it cannot be told, in words that stay the same. Local files only; looks every 2 s at most.
  [[nodiscard]] std::optional<Error> look();
  [[nodiscard]] SteadyTime next() const { return look_at_; }  // when to look again

 private:
  const std::string directory_;
  const Clock& clock_;
  std::optional<InstanceLock> lock_;
  std::optional<Error> error_;
  SteadyTime look_at_{};
};

}  // namespace neuron::plugin::dra
