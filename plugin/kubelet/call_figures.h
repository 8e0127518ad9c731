#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"

namespace neuron::plugin {

// Counts of the process's work with the kubelet, from its start. Names are few and constant: gRPC methods ("Allocate"),
// reasons of refusals (plugin/device/refusals.h, plugin/dra/claim/claim_request.h), names of resources or of the
// driver. All are there from the start, at 0: a counter that begins with its first event has no
// increase in Prometheus, and an alert on it misses that event. Thread-safe; every method holds a lock for some
// additions, so that no call of the kubelet waits for a reader of the counts.
class CallFigures {
 public:
  // Upper bounds of the buckets of durations, in seconds: from an answer that is computed (some 0.1 ms) to a claim that
  // waits for leftovers on a core.
  static constexpr std::array kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                         0.05,   0.1,     0.25,   0.5,   1.0,    5.0,   10.0, 30.0};

  struct Calls {
    std::array<std::uint64_t, kBounds.size() + 1> counts{};  // not cumulative; the last: longer than all bounds
    double sum_seconds = 0;
    std::uint64_t failed = 0;  // of them, answered with an error
  };
  using ByName = std::map<std::string, std::uint64_t, std::less<>>;
  struct Counts {
    std::map<std::string, Calls, std::less<>> calls;  // by method
    ByName refusals;                                  // by reason
    ByName allocations;                               // by name
    ByName registrations;                             // by name
  };

  // The names to begin with.
  struct Names {
    std::vector<std::string_view> methods, refusals;
    std::vector<std::string> resources;  // of allocations and registrations; in DRA mode the driver alone
  };

  enum class Outcome { answered, failed };

  explicit CallFigures(const Names& names = {}) {
    const MutexLock lock(mutex_);
    for (const std::string_view method : names.methods) counts_.calls[std::string(method)];
    for (const std::string_view reason : names.refusals) counts_.refusals[std::string(reason)];
    for (const std::string& resource : names.resources) {
      counts_.allocations[resource];
      counts_.registrations[resource];
    }
  }

  void called(std::string_view method, SteadyTime::duration took, Outcome outcome) EXCLUDES(mutex_) {
    const double seconds = std::chrono::duration<double>(took).count();
    const auto bucket = std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin();
    const MutexLock lock(mutex_);
    Calls& calls = counts_.calls[std::string(method)];
    ++calls.counts[static_cast<std::size_t>(bucket)];
    calls.sum_seconds += seconds;
    if (outcome == Outcome::failed) ++calls.failed;
  }
  void refused(std::string_view reason) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++counts_.refusals[std::string(reason)];
  }
  void gave(std::string_view name) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++counts_.allocations[std::string(name)];
  }
  void registered(std::string_view name) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ++counts_.registrations[std::string(name)];
  }

  [[nodiscard]] Counts counts() const EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return counts_;
  }

 private:
  mutable Mutex mutex_;
  Counts counts_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin
