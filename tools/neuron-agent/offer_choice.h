#pragma once

#include <optional>
#include <vector>

#include "agent/core/offer_policy.h"

namespace neuron::agent {

// Choice of one source for a node's offer: the command line with the environment, or a group of the file that
// --node-groups names. Parts that it leaves open are decided by the next source.
struct OfferChoice {
  std::optional<std::vector<model::Resource>> resources;  // nullopt: not said
  bool core_devices_said = false;
  std::optional<core::CoreDevices> core_devices;  // when said; nullopt: no split

  // Takes parts that are open here from `next`.
  void complete_from(const OfferChoice& next) {
    if (!resources) resources = next.resources;
    if (core_devices_said || !next.core_devices_said) return;
    core_devices_said = true;
    core_devices = next.core_devices;
  }
};

}  // namespace neuron::agent
