#include "plugin/resource.h"

namespace neuron::plugin {

std::optional<core::SiliconResource> silicon_of(Resource resource) {
  switch (resource) {
    case Resource::neuroncore:
      return core::SiliconResource::neuroncore;
    case Resource::neuron:
      return core::SiliconResource::neuron;
    case Resource::neurondevice:
      return core::SiliconResource::neurondevice;
    case Resource::efa:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string_view resource_name(Resource resource) {
  const auto silicon = silicon_of(resource);
  return silicon ? core::resource_name(*silicon) : std::string_view("vpc.amazonaws.com/efa");
}

std::string_view short_name(Resource resource) {
  const std::string_view name = resource_name(resource);
  return name.substr(name.find('/') + 1);
}

std::optional<Resource> parse_resource(std::string_view name) {
  for (const Resource resource : kAllResources) {
    if (resource_name(resource) == name) return resource;
  }
  return std::nullopt;
}

}  // namespace neuron::plugin
