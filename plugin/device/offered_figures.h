#pragma once

#include <map>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/core/offer_policy.h"
#include "agent/metrics/exposition.h"
#include "plugin/device/allocations.h"

namespace neuron::plugin {

// How much of each resource there is, is held, and could still be had by one container. Thread-safe.
class OfferedFigures {
 public:
  // `allocations` must outlive it.
  OfferedFigures(const Allocations& allocations, core::OfferPolicy offer)
      : allocations_(allocations), offer_(std::move(offer)) {}

  // By resource that the node offers; empty before the first scan. `holdings`: of the same allocations. Computes, some
  // tenths of a millisecond when the free units have changed since the last time.
  [[nodiscard]] std::vector<metrics::Offered> all(const std::vector<holdings::Holding>& holdings) EXCLUDES(mutex_);

 private:
  struct Largest {
    std::vector<int> free;  // units, ascending
    int request = 0;
  };
  [[nodiscard]] int largest_of(const grant::NodeUnits& node, model::Resource resource, std::vector<int> free)
      REQUIRES(mutex_);

  const Allocations& allocations_;
  const core::OfferPolicy offer_;
  Mutex mutex_;
  grant::NodeUnitsPtr node_ GUARDED_BY(mutex_);  // that largest_ is of
  std::map<model::Resource, Largest> largest_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin
