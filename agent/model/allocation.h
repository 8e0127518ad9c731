#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace neuron::model {

// One container's units of one resource, or of one driver by a claim, as reported by the kubelet: by PodResources,
// which names the pod, or by its checkpoint, which has only the uid and no claims. Names and ids are foreign text, made
// printable and bounded by the reader. holdings::Holding has their meaning on this node. Passive data; the kubelet's
// checkpoint has many thousand entries, so it is kept small.
struct Allocation {
  std::string pod_namespace;  // "" where the pod is known by its uid alone; a claim's namespace is the same
  std::string pod;            // likewise
  std::string container;
  std::string resource_name;     // "aws.amazon.com/neuroncore", or a foreign one; of a claim the driver's name
  std::vector<std::string> ids;  // of a claim: names as core::PoolName has them; sorted as text, each once
  std::string pod_uid{};         // from the checkpoint; "" from PodResources
  // Name of the ResourceClaim; "" for a resource of a device plugin. The kubelet lists the whole claim with each
  // container that uses some of it (docs/reference/kubelet.md#podresources).
  std::string claim{};
  // One of the claim's CDI ids, as its driver gave it: "k8s.neuron.aws.com/claim=<uid>-neuron-device-3". PodResources
  // has no uid of a claim. "": it has none, as a claim whose devices have no nodes.
  std::string cdi_id{};
  // True for a claim with admin access (agent/core/hardware.h): the container holds none of its `ids`. A device of an
  // admin claim that has no CDI id, as an interface, is not distinguished and counts as held.
  bool admin_access = false;
  friend bool operator==(const Allocation&, const Allocation&) = default;
};

// The container's name in texts: "namespace/pod/container"; "" where the pod is known by its uid alone.
[[nodiscard]] inline std::string holder_name(const Allocation& one) {
  return one.pod.empty() ? "" : one.pod_namespace + "/" + one.pod + "/" + one.container;
}

// Identifies a container: "pod <uid>/<container>" where the uid is known, else "namespace/pod/container".
// Never empty.
[[nodiscard]] inline std::string holder_of(const Allocation& one) {
  if (!one.pod_uid.empty()) return "pod " + one.pod_uid + "/" + one.container;
  return one.pod_namespace + "/" + one.pod + "/" + one.container;
}

// The healthy devices that the kubelet knows, by resource name; a resource without any may be absent.
using Allocatable = std::map<std::string, std::set<std::string>>;

}  // namespace neuron::model
