#include "agent/model/resource.h"

namespace neuron::model {

std::string_view resource_name(Resource resource) {
  switch (resource) {
    case Resource::neuroncore:
      return "aws.amazon.com/neuroncore";
    case Resource::neuron:
      return "aws.amazon.com/neuron";
    case Resource::neurondevice:
      return "aws.amazon.com/neurondevice";
    case Resource::efa:
      return "vpc.amazonaws.com/efa";
  }
  return "";
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

bool has_cores(Resource resource) {
  return resource != Resource::efa;
}

}  // namespace neuron::model
