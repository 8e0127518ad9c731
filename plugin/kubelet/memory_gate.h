#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/result.h"

namespace neuron::plugin {

// Holds a container back while processes own device memory on the cores it is given, so that a pod that follows another
// on the same core does not fail in nrt_allocate_neuron_cores. It holds back only on the driver's values: when they are
// unknown (a file that is missing or unreadable, a read that hangs), the container starts and one line is logged. The
// driver is asked on threads that may hang, one device at a time per container. Thread-safe.
//
// Only the driver knows which physical core is behind a logical one. In a pod without privilege it is not asked, and on
// Trainium2/3 every device may have one of two orders, by driver version and position in an UltraServer. There the
// assumed order decides which physical core is checked. Memory on it does not hold back while another container holds
// the core that has this physical one in the other order: it may be the memory of that running container.
class MemoryGate {
 public:
  struct Core {
    std::string name;  // "core 5", for messages
    int device = 0;
    int physical = 0;
    std::vector<int> maybe_of;  // cores, as `is_held` knows them, that it may belong to in another order
  };
  using Done = std::function<void(std::optional<Error>)>;
  using Job = std::function<void()>;

  struct Ports {
    // Bytes of device memory that processes own on a physical core; nullopt = unknown. May block without limit; called
    // in jobs of `run` only.
    std::function<std::optional<std::uint64_t>(int device, int physical_core)> memory_in_use;
    std::function<void(Job)> run;               // runs a job that may block without limit, at once, on a thread for it
    std::function<void(SteadyTime, Job)> post;  // runs a job that does not block at or after a time
    std::function<bool(const std::vector<int>& cores)> is_held;  // some container holds one of them; in jobs of `run`
    // Names the processes that own memory there: " pid 7", or "" where unknown; in jobs of `run`.
    std::function<std::string(int device, int physical_core)> owners;
  };

  static constexpr std::chrono::seconds kTimeout{25};  // the kubelet gives up after 30 s, of a claim after 45 s
  static constexpr std::chrono::milliseconds kRetryEvery{100};
  static constexpr std::chrono::milliseconds kDeviceTimeout{2000};  // after which a device does not answer

  // `clock`, and objects that the ports refer to, must outlive the gate and every job of `run`.
  MemoryGate(Ports ports, const Clock& clock);
  ~MemoryGate();  // cancel_all()
  MemoryGate(const MemoryGate&) = delete;
  MemoryGate& operator=(const MemoryGate&) = delete;

  // `done` comes exactly once: nullopt = free, or unknown; deadline_exceeded naming core and, where known, pid, when
  // memory was held until kTimeout; unavailable when cancelled. A device that hangs costs a container kDeviceTimeout,
  // the next ones of the same container a quarter of it; later containers on it nothing until it answers. `cores` by
  // device. `group`: the argument of cancel(); `subject`: for the log, "resource=…".
  void wait(std::string group, std::string subject, std::vector<Core> cores, Done done);

  void cancel(const std::string& group, const std::string& why);  // its waiters end with unavailable
  void cancel_all();                                              // every waiter does; later ones too

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with jobs that are still to come, or hang
};

}  // namespace neuron::plugin
