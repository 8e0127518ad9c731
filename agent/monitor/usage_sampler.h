#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "agent/base/clock.h"
#include "agent/model/usage.h"
#include "agent/monitor/watched_scan.h"

namespace neuron::monitor {

// The two newest samples of what the node is doing, from which rates are made. Nothing is read without a request: the
// first one starts the reading, which goes on at the interval until nothing has asked for kWanted. Reads run under
// watch (watched_scan.h): a device whose read hangs is left out, and the samples of all others go on. Thread-safe; a
// read or a timer that is left may outlive this object.
class UsageSampler {
 public:
  static constexpr std::chrono::minutes kWanted{5};
  static constexpr std::chrono::milliseconds kBudget{2000};  // for one part of a sample

  struct Ports {
    WatchedUsage::Run run;                                      // on a thread that may hang
    WatchedUsage::MakeScan make_read;                           // of WatchedRead; what it makes reads one sample
    std::function<bool()> can_read;                             // whether there is anything to read yet
    std::function<void(SteadyTime, std::function<void()>)> at;  // runs a job at that time (Monitor::post)
    // On the thread of `at`, when the parts that are left out have changed.
    std::function<void(const std::vector<model::Unanswered>&)> on_unanswered;
  };
  struct Samples {
    // Less than kWanted older than `now`, so that rates are of the present. nullptr: there is none such, at the start
    // and after a pause.
    std::shared_ptr<const model::UsageSample> before;
    std::shared_ptr<const model::UsageSample> now;  // nullptr: there is none yet
  };

  // `clock` must outlive this object and whatever `at` was given.
  UsageSampler(Ports ports, const Clock& clock, std::chrono::milliseconds interval);

  // Never waits for a read. The samples may be as old as the last request but one: UsageSample::at says.
  [[nodiscard]] Samples ask();

 private:
  struct State;
  static void turn(const std::shared_ptr<State>& state);
  static void check(const std::shared_ptr<State>& state);
  static void collect(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

}  // namespace neuron::monitor
