#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"
#include "plugin/allocation_desk.h"

namespace neuron::plugin {

// Holds back PreStartContainer until nobody uses the container's cores any more, so that a pod that follows another on
// the same core does not fail in nrt_allocate_neuron_cores. The driver is asked on the monitor's worker, never in the
// RPC. Thread-safe.
class PreStartGate {
 public:
  using Done = std::function<void(std::optional<Error>)>;
  // Bytes of device memory that processes still own on a physical core; nullopt = cannot tell, which does not hold
  // back.
  using MemoryInUse = std::function<std::optional<std::uint64_t>(int device, int physical_core)>;
  // Runs a job on the worker at or after a time.
  using Post = std::function<void(SteadyTime, std::function<void()>)>;

  static constexpr std::chrono::seconds kPatience{25};  // the kubelet gives up after 30 s
  static constexpr std::chrono::milliseconds kRetryEvery{100};

  // `desk` and `clock` must outlive the gate. `memory_in_use` is called on the worker only and may block.
  PreStartGate(AllocationDesk& desk, MemoryInUse memory_in_use, Post post, const Clock& clock);
  ~PreStartGate();  // cancel_all()
  PreStartGate(const PreStartGate&) = delete;
  PreStartGate& operator=(const PreStartGate&) = delete;

  // `done` comes exactly once: nullopt = free; invalid_argument = unknown ids; deadline_exceeded naming core and, where
  // the driver tells, pid; unavailable when cancelled.
  void wait(Resource resource, const std::vector<std::string>& ids, Done done);

  // Ends the waits whose patience is over, even while the worker hangs. Returns when the next one is, if any waits.
  std::optional<SteadyTime> expire();

  void cancel(Resource resource);  // the waiters of one resource end with unavailable: its server is going away
  void cancel_all();               // every waiter ends with unavailable; later ones too

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with jobs that may still sit in the worker's queue
};

}  // namespace neuron::plugin
