#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

// A pod's requests to the kubelet and the grants of its containers. Passive data.
namespace neuron::sim {

using IdSet = std::set<std::string>;
// A claim's name → names of its devices, all of the project's driver, "admin:<name>" for admin access. They are not
// prepared here: PodResources shows them.
using Claims = std::map<std::string, std::vector<std::string>>;

// init: runs to its end before the app containers, which inherit its devices. restartable_init: a side car, which
// keeps them.
enum class ContainerKind { app, init, restartable_init };

struct ContainerSpec {
  std::string name;
  ContainerKind kind = ContainerKind::app;
  std::map<std::string, int> requests = {};  // extended resource → units (limits); 0 is allowed, as in a real pod
  std::vector<std::string> order = {};       // resources to ask for first, in this order; the rest in random order
  std::optional<std::set<int>> numa_affinity = {};  // the topology manager's answer; absent: by the kubelet's policy
  Claims claims = {};
};

struct PodSpec {
  std::string name;
  std::string ns = "default";
  std::vector<ContainerSpec> containers = {};
};

struct DeviceNode {
  std::string container_path, host_path, permissions;  // permissions: letters of "rwm"
  friend bool operator==(const DeviceNode&, const DeviceNode&) = default;
};

// The data that one container is started with: the answers of all its resources merged as the kubelet merges them (the
// first wins, in random order of resources).
struct ContainerGrant {
  std::string name;
  std::map<std::string, std::string> env;
  std::vector<DeviceNode> devices;                      // one per container path, in order of arrival
  std::vector<std::string> cdi_names;                   // without duplicates
  std::map<std::string, std::vector<std::string>> ids;  // resource → ids, numbers ascending before other text
  std::vector<std::string> conflicts;                   // one sentence per env or path answered with two values
  std::vector<std::string> unserved;  // resources that no plugin ever registered: admitted without a device
  Claims claims;                      // as the spec has them
  std::string start_error;            // PreStartContainer refused: the container does not start; "" otherwise
};

struct PodResult {
  std::string uid;
  std::vector<ContainerGrant> containers;  // in the order of PodSpec::containers
};

// One resource of the node as the node status shows it.
struct ResourceView {
  int capacity = 0;        // healthy + unhealthy
  int allocatable = 0;     // healthy
  int in_use = 0;          // units the kubelet counts as allocated, leaked ones included
  bool connected = false;  // its plugin's endpoint has not been stopped
  IdSet healthy, unhealthy;
};

// One id of a device plugin; a device on several NUMA nodes has one entry per node.
struct DeviceId {
  std::string resource, id;
  std::optional<std::int64_t> numa_node;
  friend auto operator<=>(const DeviceId&, const DeviceId&) = default;
};

struct ContainerView {
  std::string name;
  ContainerKind kind = ContainerKind::app;
  std::vector<DeviceId> devices;
  Claims claims = {};
};

struct PodView {
  std::string name, ns, uid;
  std::vector<ContainerView> containers;
};

}  // namespace neuron::sim
