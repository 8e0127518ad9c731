#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "agent/core/ledger.h"

namespace neuron::plugin {

using core::Resource;
using core::resource_name;

inline constexpr std::array kAllResources = {Resource::neuroncore, Resource::neuron, Resource::neurondevice,
                                             Resource::efa};

[[nodiscard]] std::string_view short_name(Resource resource);  // "neuroncore", "neuron", "neurondevice", "efa"
[[nodiscard]] std::optional<Resource> parse_resource(std::string_view name);  // the full name

}  // namespace neuron::plugin
