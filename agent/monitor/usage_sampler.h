#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "agent/base/clock.h"
#include "agent/model/usage.h"

namespace neuron::monitor {

// The two newest samples of what the node is doing, from which rates are made. Nothing is read while nobody asks: the
// first who asks starts the reading, which goes on at the interval until nobody has asked for kWanted. Reads run on
// threads that may hang in a broken driver, one at a time: while one hangs the samples grow old, and that is all.
// Thread-safe; a read or a timer that is left may outlive this object.
class UsageSampler {
 public:
  static constexpr std::chrono::minutes kWanted{5};

  struct Ports {
    std::function<std::optional<model::UsageSample>()> read;    // may block for ever; nullopt: nothing can be read yet
    std::function<void(std::function<void()>)> run;             // on a thread that may hang (Workers::run)
    std::function<void(SteadyTime, std::function<void()>)> at;  // runs a job at that time (Monitor::post)
  };
  struct Samples {
    // Less than kWanted older than `now`, so that rates are of the present. nullptr: there is none such, at the start
    // and after a pause or a read that hung for so long.
    std::shared_ptr<const model::UsageSample> before;
    std::shared_ptr<const model::UsageSample> now;  // nullptr: there is none yet
  };

  // `clock` must outlive this object and whatever `at` was given.
  UsageSampler(Ports ports, const Clock& clock, std::chrono::milliseconds interval);

  // Never waits for a read. The samples may be as old as the last time somebody wanted any: UsageSample::at tells.
  [[nodiscard]] Samples ask();

 private:
  struct State;
  static void turn(const std::shared_ptr<State>& state);
  static void read(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace neuron::monitor
