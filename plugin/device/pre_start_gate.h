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
#include "plugin/device/allocations.h"

namespace neuron::plugin {

// Holds back PreStartContainer while processes own device memory on the container's cores, so that a pod that follows
// another on the same core does not fail in nrt_allocate_neuron_cores. It holds back only on what the driver says: when
// nobody can tell (a file that is not there or cannot be read, a read that hangs), the container starts and one line is
// logged. The driver is asked on threads that may hang, one device at a time per container. Thread-safe.
//
// Only the driver knows which physical core is behind a logical one. In a pod without privilege it is not asked, and on
// Trainium2/3 every device may have one of two orders, by driver version and position in an UltraServer. There the
// assumed order decides which physical core is looked at. Memory on it does not hold back while another container holds
// the logical core that has this physical one in the other order: it may be the memory of that running container.
class PreStartGate {
 public:
  using Done = std::function<void(std::optional<Error>)>;
  using Job = std::function<void()>;
  // Bytes of device memory that processes own on a physical core; nullopt = cannot tell. May block for ever.
  using MemoryInUse = std::function<std::optional<std::uint64_t>(int device, int physical_core)>;
  using Run = std::function<void(Job)>;               // runs a job that may block for ever, at once, on a thread for it
  using Post = std::function<void(SteadyTime, Job)>;  // runs a job that does not block at or after a time

  static constexpr std::chrono::seconds kTimeout{25};  // the kubelet gives up after 30 s
  static constexpr std::chrono::milliseconds kRetryEvery{100};
  static constexpr std::chrono::milliseconds kDeviceTimeout{2000};  // after which a device does not answer

  // `allocations` and `clock` must outlive the gate and every job that it was given to run. `memory_in_use` is called
  // in jobs of `run` only.
  PreStartGate(Allocations& allocations, MemoryInUse memory_in_use, Run run, Post post, const Clock& clock);
  ~PreStartGate();  // cancel_all()
  PreStartGate(const PreStartGate&) = delete;
  PreStartGate& operator=(const PreStartGate&) = delete;

  // `done` comes exactly once: nullopt = free, or nobody can tell; invalid_argument = unknown ids; deadline_exceeded
  // naming core and, where the driver tells, pid, when memory was held until kTimeout; unavailable when cancelled.
  // A device that hangs costs a container kDeviceTimeout, the next ones of the same container a quarter of it; later
  // containers on it nothing until it answers.
  void wait(model::Resource resource, const std::vector<std::string>& ids, Done done);

  void cancel(model::Resource resource);  // the waiters of one resource end with unavailable: its server is going away
  void cancel_all();                      // every waiter ends with unavailable; later ones too

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with jobs that are still to come, or hang
};

}  // namespace neuron::plugin
