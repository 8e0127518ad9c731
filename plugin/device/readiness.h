#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/metrics/endpoints.h"
#include "agent/model/resource.h"

namespace neuron::plugin {

// How far one resource is on its way to the kubelet.
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
  bool scanned = false;                      // the machine was scanned and assessed once
  std::vector<ResourceReadiness> resources;  // that the options allow
  friend bool operator==(const ServingState&, const ServingState&) = default;
};

// Ready when the machine was read and every resource that the node has is registered, or there is none. The text has
// one line per resource that is offered, with what is missing; or one line in their place.
[[nodiscard]] metrics::Readiness assess_readiness(const ServingState& state);

// Whether the kubelet watches it, by full name of each resource that is offered.
[[nodiscard]] std::map<std::string, bool> registered_resources(const ServingState& state);

}  // namespace neuron::plugin
