#include "plugin/kubelet/call_figures.h"

#include <algorithm>
#include <cstddef>

namespace neuron::plugin {
namespace {

// The entry of a name, made when it comes for the first time.
template <typename Map>
typename Map::mapped_type& entry(Map& map, std::string_view name) {
  const auto found = map.find(name);
  return found != map.end() ? found->second : map[std::string(name)];
}

}  // namespace

CallFigures::CallFigures(const Names& names) {
  const MutexLock lock(mutex_);
  for (const std::string_view method : names.methods) static_cast<void>(entry(counts_.calls, method));
  for (const std::string_view reason : names.refusals) static_cast<void>(entry(counts_.refusals, reason));
  for (const std::string& resource : names.resources) {
    static_cast<void>(entry(counts_.allocations, resource));
    static_cast<void>(entry(counts_.registrations, resource));
  }
}

void CallFigures::called(std::string_view method, SteadyTime::duration took, Outcome outcome) {
  const double seconds = std::chrono::duration<double>(took).count();
  const auto bucket =
      static_cast<std::size_t>(std::lower_bound(kBounds.begin(), kBounds.end(), seconds) - kBounds.begin());
  const MutexLock lock(mutex_);
  Calls& calls = entry(counts_.calls, method);
  ++calls.counts[bucket];
  calls.sum_seconds += seconds;
  if (outcome == Outcome::failed) ++calls.failed;
}

void CallFigures::refused(std::string_view reason) {
  const MutexLock lock(mutex_);
  ++entry(counts_.refusals, reason);
}

void CallFigures::gave(std::string_view name) {
  const MutexLock lock(mutex_);
  ++entry(counts_.allocations, name);
}

void CallFigures::registered(std::string_view name) {
  const MutexLock lock(mutex_);
  ++entry(counts_.registrations, name);
}

CallFigures::Counts CallFigures::counts() const {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace neuron::plugin
