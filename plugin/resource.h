#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "agent/core/ledger.h"

namespace neuron::plugin {

// What the agent can advertise (DESIGN.md §4). One kubelet endpoint each.
enum class Resource { neuroncore, neuron, neurondevice, efa };

inline constexpr std::array kAllResources = {Resource::neuroncore, Resource::neuron, Resource::neurondevice,
                                             Resource::efa};

[[nodiscard]] std::string_view resource_name(Resource resource);  // "aws.amazon.com/neuroncore", …
[[nodiscard]] std::string_view short_name(Resource resource);     // "neuroncore", "neuron", "neurondevice", "efa"
[[nodiscard]] std::optional<Resource> parse_resource(std::string_view name);  // the full name

// The part of the silicon rules it belongs to; nullopt for efa.
[[nodiscard]] std::optional<core::SiliconResource> silicon_of(Resource resource);

}  // namespace neuron::plugin
