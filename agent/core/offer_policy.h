#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/resource.h"

// Decides which devices a node offers under which resource names. The scheduler counts `neuron` and `neuroncore`
// separately though they are the same hardware; where every device is offered under one name only, both of its counts
// are exact. A node with a `split` offers some devices as cores and all others whole
// (docs/resources.md#one-name-or-two). Pure.
namespace neuron::core {

// The devices that a split node offers as cores. The node need not have all of them.
struct CoreDevices {
  bool all = false;         // every device, regardless of `listed`
  std::vector<int> listed;  // device indices, ascending, each once; may be empty: no device is offered as cores
  [[nodiscard]] bool contains(int device) const;
  friend bool operator==(const CoreDevices&, const CoreDevices&) = default;
};

// By default everything is offered under every name. The ledger (plugin/device/ledger.h) keeps units that a container
// holds under a name that is no longer offered.
struct OfferPolicy {
  std::vector<model::Resource> resources{model::kAllResources.begin(),
                                         model::kAllResources.end()};  // any order, each once; may be empty
  std::optional<CoreDevices> split;                                    // nullopt: every device under every name

  [[nodiscard]] bool serves(model::Resource resource) const;
  // A device under the name of a resource of cores; for efa, `device` does not matter.
  [[nodiscard]] bool offers(model::Resource resource, int device) const;
  // Some device is offered both by cores and as a whole: the scheduler may give the same hardware twice.
  [[nodiscard]] bool mixes() const;
  // False when nothing is offered on any node: no name at all, or only names to which the split leaves no device.
  [[nodiscard]] bool can_offer() const;
  friend bool operator==(const OfferPolicy&, const OfferPolicy&) = default;
};

// "neuron,efa", short or full names, in the order of kAllResources and each once; "all" is every name but neurondevice.
// Errors: invalid_argument, with the word and the valid names; also for a list without a name.
[[nodiscard]] Result<std::vector<model::Resource>> parse_resource_list(std::string_view text);
[[nodiscard]] std::string format_resource_list(const std::vector<model::Resource>& resources);  // short names

// "0-3,8", "all", "none" (no device as cores), or "off" (no split: nullopt).
// Errors: invalid_argument, with the form of such a list.
[[nodiscard]] Result<std::optional<CoreDevices>> parse_core_devices(std::string_view text);
[[nodiscard]] std::string format_core_devices(const std::optional<CoreDevices>& split);

}  // namespace neuron::core
