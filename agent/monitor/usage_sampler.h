#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "agent/base/clock.h"
#include "agent/model/usage.h"
#include "agent/monitor/watched_scan.h"

namespace neuron::monitor {

// The two newest samples of the node's use, for rates. The first request starts reading at the interval, until there
// was no request for kWanted. Reads run under watch (watched_scan.h): a device whose read hangs is left out.
// Thread-safe; a read or a timer that is left may outlive this object.
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
    std::shared_ptr<const model::UsageSample> before;  // less than kWanted older than `now`, or nullptr
    std::shared_ptr<const model::UsageSample> now;     // nullptr: there is none yet
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
