#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

// What PodResources answers, as plain structs: apart from its client, so that those who only look at it do without
// gRPC.
namespace neuron::rpc {

// The devices of one resource that one container holds, as the kubelet tells. Ids are unique and sorted. A pod that
// holds nothing is one entry without container, resource and ids.
struct PodDevices {
  std::string pod_namespace;
  std::string pod;
  std::string container;
  std::string resource_name;
  std::vector<std::string> ids;
};

// The healthy devices that the kubelet knows, by resource name; a resource of which it knows none may be absent.
using Allocatable = std::map<std::string, std::set<std::string>>;

}  // namespace neuron::rpc
