#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace neuron::model {

// Resources that the agent can advertise (docs/resources.md#names-and-ids). `neurondevice` is an alias of `neuron` with
// the same device ids.
enum class Resource { neuroncore, neuron, neurondevice, efa };

inline constexpr std::array kAllResources = {Resource::neuroncore, Resource::neuron, Resource::neurondevice,
                                             Resource::efa};

[[nodiscard]] constexpr std::string_view resource_name(Resource resource) {  // "aws.amazon.com/neuroncore", …
  constexpr std::array<std::string_view, kAllResources.size()> kNames = {
      "aws.amazon.com/neuroncore", "aws.amazon.com/neuron", "aws.amazon.com/neurondevice", "vpc.amazonaws.com/efa"};
  return kNames.at(static_cast<std::size_t>(resource));
}

[[nodiscard]] constexpr std::string_view short_name(
    Resource resource) {  // "neuroncore", "neuron", "neurondevice", "efa"
  const std::string_view name = resource_name(resource);
  return name.substr(name.find('/') + 1);
}

[[nodiscard]] constexpr std::optional<Resource> parse_resource(std::string_view name) {  // the full name
  for (const Resource resource : kAllResources) {
    if (resource_name(resource) == name) return resource;
  }
  return std::nullopt;
}

[[nodiscard]] constexpr bool has_cores(Resource resource) {  // made of cores: all but efa
  return resource != Resource::efa;
}

}  // namespace neuron::model
