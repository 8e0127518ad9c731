#include "plugin/resource.h"

namespace neuron::plugin {

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
