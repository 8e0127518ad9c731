#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "agent/model/usage.h"

namespace neuron::sim {

// Pseudorandom numbers, equal for equal seeds on every machine (the standard distributions are not): SplitMix64 by
// Steele, Lea and Flood. Not thread-safe.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  [[nodiscard]] std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
  }
  [[nodiscard]] double between(double low, double high) {
    return low + (high - low) * (static_cast<double>(next() >> 11U) * 0x1p-53);
  }
  // 0 to count - 1; count > 0.
  [[nodiscard]] int below(int count) { return static_cast<int>(next() % static_cast<std::uint64_t>(count)); }

 private:
  std::uint64_t state_;
};

struct LoadDevice {
  int index = 0;
  std::vector<int> cores;  // physical, ascending
};

struct LoadEfa {
  std::string name;
  double bytes_per_second = 0;  // line rate of one direction
};

// The part of a host that a workload uses.
struct LoadShape {
  std::vector<LoadDevice> devices;      // ascending index
  std::vector<LoadEfa> efas;            // in the order of their devices
  std::uint64_t core_memory_bytes = 0;  // device memory, per physical core
  double core_flops = 0;                // a second, of one busy physical core
  int cpus = 1;
  std::uint64_t host_memory_bytes = 0;
};

struct CoreActivity {
  int device = 0;
  int core = 0;
  int pid = 0;  // of the process that has it, 0 = none
  // Growth in this step.
  std::uint64_t busy_us = 0;
  std::uint64_t flops = 0;
  std::uint64_t inferences = 0;
  std::uint64_t model_loads = 0;
  // In use now.
  std::array<std::uint64_t, model::kDeviceMemoryKinds> device_memory{};
  std::uint64_t host_memory = 0;
};

// The sum over the kinds of memory.
template <std::size_t N>
[[nodiscard]] std::uint64_t total(const std::array<std::uint64_t, N>& kinds) {
  return std::reduce(kinds.begin(), kinds.end());
}

// One process as the driver of one device names it.
struct ProcessShare {
  int pid = 0;
  unsigned core_mask = 0;
  std::uint64_t host_bytes = 0;
  std::uint64_t device_bytes = 0;
  friend bool operator==(const ProcessShare&, const ProcessShare&) = default;
};

struct DeviceActivity {
  int index = 0;
  std::array<std::uint64_t, model::kHostMemoryKinds> host_memory{};
  double power_percent = 0;                 // of the maximum, now
  std::optional<model::PowerUsage> minute;  // when a minute has ended in this step
  std::vector<ProcessShare> processes;      // ascending pid
  std::uint64_t corrected_errors = 0;       // ECC, growth in this step
};

struct EfaActivity {
  std::string name;
  std::map<std::string, std::uint64_t> growth;  // counter's path below the RDMA device, to growth
};

struct ProcessActivity {
  int pid = 0;
  std::vector<std::string> arguments;
  std::string tag;           // "" = none
  std::vector<int> devices;  // that it has open
  // Since the process began.
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t start_ticks = 0;  // since the load began
  std::uint64_t resident_bytes = 0;
};

// Everything of one step. The lists hold all devices, cores and interfaces of the shape, busy or not.
struct Activity {
  double seconds = 0;  // since the load began, at the end of the step
  std::vector<DeviceActivity> devices;
  std::vector<CoreActivity> cores;
  std::vector<EfaActivity> efas;
  std::vector<ProcessActivity> processes;  // ascending pid
  // Growth of all vCPUs' ticks in this step.
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t idle_ticks = 0;
  std::uint64_t host_bytes = 0;  // in use now
};

inline constexpr int kTicksPerSecond = 100;  // USER_HZ of every kernel that has these devices

// A made-up day on a node: trainings over half of it, servers on one or two devices, and short jobs come and go, load
// their models, compute in waves, talk over EFA, and leave. The same seed, shape and steps give the same day; the same
// seed and shape give the same jobs. No I/O, no clock. Not thread-safe.
class Workload {
 public:
  Workload(LoadShape shape, std::uint64_t seed);

  // The activity of the next `length`, which must be positive.
  [[nodiscard]] Activity step(std::chrono::microseconds length);

 private:
  // Some cores of one device, given to one job at a time.
  struct Slot {
    std::size_t device = 0;  // position in shape_.devices
    std::vector<int> cores;  // physical
    bool taken = false;
  };
  struct Job {
    int pid = 0;
    std::size_t kind = 0;
    std::vector<std::size_t> slots;
    double begin = 0;  // seconds since the load began, as are all times here
    double ready = 0;  // the model is loaded
    double end = 0;
    double level = 0;         // mean part of the time that its cores are busy
    double wave_seconds = 0;  // how long one wave takes
    double memory_share = 0;  // of the cores' memory that tensors take
    double user_ticks = 0;
    double system_ticks = 0;
    bool began = false;  // it has been seen in a step
  };
  struct Minute {
    double min = 0;
    double max = 0;
    double weighted = 0;
    double seconds = 0;
  };

  void end_jobs();
  void begin_jobs();
  void begin_job(std::size_t kind_number);
  [[nodiscard]] double busy_part(const Job& job, std::size_t core) const;
  void play_job(Job& job, double length, Activity& activity);
  void play_cores(const Job& job, const Slot& slot, double length, double loaded, Activity& activity);
  void play_traffic(const Job& job, const Slot& slot, double length, Activity& activity) const;
  void play_power(double length, Activity& activity);
  void play_machine(double length, Activity& activity);
  void describe_process(const Job& job, double loaded, Activity& activity) const;

  LoadShape shape_;
  Dice dice_;   // which jobs come when: the same however the time is cut into steps
  Dice noise_;  // variation added by each step
  std::vector<Slot> slots_;
  std::vector<std::size_t> first_core_;  // of each device, in Activity::cores
  std::vector<Job> jobs_;
  std::vector<Minute> minutes_;  // of each device
  double now_ = 0;
  double next_job_ = 0;
  double next_roll_ = 0;
  double next_error_ = 0;
  double spare_user_ = 0;  // parts of ticks that have not been given out
  double spare_system_ = 0;
  double spare_idle_ = 0;
  int next_pid_ = 0;
};

}  // namespace neuron::sim
