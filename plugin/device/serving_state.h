#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/core/offer_policy.h"
#include "agent/metrics/endpoints.h"
#include "agent/metrics/exposition.h"
#include "agent/model/resource.h"
#include "plugin/device/allocations.h"

// The state of the device plugin for probes, node status and metrics.
namespace neuron::plugin {

// State of one resource's registration with the kubelet.
enum class ServingStep {
  not_offered,  // the node has none of it
  waiting,      // not registered; no kubelet, or the next attempt is due later
  registering,  // the kubelet has been asked
  unwatched,    // the kubelet said yes and has not opened ListAndWatch yet: it knows no unit
  registered,   // the kubelet watches the list
};

struct ResourceReadiness {
  model::Resource resource{};
  ServingStep step = ServingStep::waiting;
  friend bool operator==(const ResourceReadiness&, const ResourceReadiness&) = default;
};

// Input of the readiness decision. Passive data.
struct ServingState {
  bool scanned = false;                               // the machine was scanned and assessed once
  std::vector<ResourceReadiness> resources;           // that the options allow
  std::optional<std::chrono::milliseconds> waited{};  // for the agent that serves, as KubeletDirectory::waited()
  friend bool operator==(const ServingState&, const ServingState&) = default;
};

// Ready when the machine was read and every resource that the node has is registered, or there is none; and while it
// waits to take over from another agent, so that a rolling update ends that one, for five minutes: two agents that stay
// are a mistake. The text has one line per resource that is offered, with what is missing; or one line in their place.
[[nodiscard]] metrics::Readiness assess_readiness(const ServingState& state);

// Whether the kubelet watches it, by full name of each resource that is offered.
[[nodiscard]] std::map<std::string, bool> registered_resources(const ServingState& state);

// Units of each resource: all, held, and the most that one container could still get. Thread-safe.
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
