#include "agent/model/allocation.h"

namespace neuron::model {
namespace {

std::string full_name(const Allocation& allocation) {
  return allocation.pod_namespace + "/" + allocation.pod + "/" + allocation.container;
}

}  // namespace

std::string holder_of(const Allocation& allocation) {
  if (allocation.pod_uid.empty()) return full_name(allocation);
  return "pod " + allocation.pod_uid + "/" + allocation.container;
}

std::string holder_name(const Allocation& allocation) {
  return allocation.pod.empty() ? "" : full_name(allocation);
}

}  // namespace neuron::model
