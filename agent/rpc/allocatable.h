#pragma once

#include <map>
#include <set>
#include <string>

namespace neuron::rpc {

// The healthy devices that the kubelet knows, by resource name; a resource of which it knows none may be absent. Apart
// from the client, so that those who only look at it do without gRPC.
using Allocatable = std::map<std::string, std::set<std::string>>;

}  // namespace neuron::rpc
