#pragma once

#include <string>
#include <vector>

namespace neuron::pods {

// The devices of one resource that one container holds, as the kubelet tells. Names are printable; ids are unique and
// sorted as text. Passive data.
struct PodHolding {
  std::string pod_namespace;
  std::string pod;
  std::string container;
  std::string resource;  // "aws.amazon.com/neuroncore"
  std::vector<std::string> ids;
  friend bool operator==(const PodHolding&, const PodHolding&) = default;
};

}  // namespace neuron::pods
