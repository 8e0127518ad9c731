#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "tools/neuron-sim/load_activity.h"
#include "tools/neuron-sim/load_dice.h"

namespace neuron::sim {

// A made-up day on a node: trainings over half of it, servers on one or two devices, and short jobs come and go, load
// their models, compute in waves, talk over EFA, and leave. The same seed, shape and steps give the same day; the same
// seed and shape give the same jobs. No I/O, no clock. Not thread-safe.
class Workload {
 public:
  Workload(LoadShape shape, std::uint64_t seed);

  // What happens in the next `length`, which must be positive.
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
  Dice noise_;  // what each step adds to that
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
