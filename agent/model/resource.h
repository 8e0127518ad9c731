#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace neuron::model {

// Resources that the agent can advertise (docs/resources.md#names-and-ids). `neurondevice` is an alias of `neuron` with
// the same device ids.
enum class Resource { neuroncore, neuron, neurondevice, efa };

inline constexpr std::array kAllResources = {Resource::neuroncore, Resource::neuron, Resource::neurondevice,
                                             Resource::efa};

[[nodiscard]] std::string_view resource_name(Resource resource);  // "aws.amazon.com/neuroncore", …
[[nodiscard]] std::string_view short_name(Resource resource);     // "neuroncore", "neuron", "neurondevice", "efa"
[[nodiscard]] std::optional<Resource> parse_resource(std::string_view name);  // the full name
[[nodiscard]] bool has_cores(Resource resource);                              // made of cores: all but efa

}  // namespace neuron::model
