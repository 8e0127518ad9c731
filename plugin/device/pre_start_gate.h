#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "plugin/device/allocations.h"
#include "plugin/kubelet/memory_gate.h"

namespace neuron::plugin {

// Holds back PreStartContainer while processes own device memory on the container's cores: the memory gate for ids of
// resources. Thread-safe.
class PreStartGate {
 public:
  using Done = MemoryGate::Done;
  using Job = MemoryGate::Job;
  using MemoryInUse = std::function<std::optional<std::uint64_t>(int device, int physical_core)>;
  using Run = std::function<void(Job)>;
  using Post = std::function<void(SteadyTime, Job)>;

  static constexpr std::chrono::seconds kTimeout = MemoryGate::kTimeout;
  static constexpr std::chrono::milliseconds kRetryEvery = MemoryGate::kRetryEvery;
  static constexpr std::chrono::milliseconds kDeviceTimeout = MemoryGate::kDeviceTimeout;

  // The functions are those of MemoryGate::Ports; `allocations` and `clock` must outlive the gate and every job that it
  // passed to `run`.
  PreStartGate(Allocations& allocations, MemoryInUse memory_in_use, Run run, Post post, const Clock& clock);

  // `done` comes exactly once: invalid_argument = unknown ids; else as of MemoryGate::wait().
  void wait(model::Resource resource, const std::vector<std::string>& ids, Done done);

  void cancel(model::Resource resource);  // the waiters of one resource end with unavailable: its server is going away
  void cancel_all();                      // every waiter ends with unavailable; later ones too

 private:
  Allocations& allocations_;
  MemoryGate gate_;
};

}  // namespace neuron::plugin
