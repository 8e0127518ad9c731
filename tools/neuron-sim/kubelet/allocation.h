#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "deviceplugin/v1beta1/api.pb.h"
#include "tools/neuron-sim/kubelet/pod.h"

// The parts of the device manager without state: sets of ids, NUMA nodes, merged answers, the checkpoint file.
namespace neuron::sim {

[[nodiscard]] inline IdSet minus(const IdSet& a, const IdSet& b) {
  IdSet out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

[[nodiscard]] inline IdSet both(const IdSet& a, const IdSet& b) {
  IdSet out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

[[nodiscard]] inline IdSet either(IdSet a, const IdSet& b) {
  a.insert(b.begin(), b.end());
  return a;
}

// One device as its plugin last listed it.
struct PluginDevice {
  bool healthy = false;
  std::vector<int> numa_nodes;  // empty: no topology known
};
using PluginDevices = std::map<std::string, PluginDevice>;  // by id

// `available` in three parts: on a node of the affinity, on other nodes only, on none.
struct NumaSplit {
  IdSet aligned, unaligned, no_affinity;
};

// Without an affinity, or when no device of the resource has a NUMA node, everything is in no_affinity.
// Source: manager.go filterByAffinity.
[[nodiscard]] NumaSplit split_by_numa(const IdSet& available, const PluginDevices& devices,
                                      const std::optional<std::set<int>>& affinity);

// The demand of a container for one resource. `usable`: healthy ids that are free or reusable.
struct NumaDemand {
  int needed = 0;
  PluginDevices devices;
  IdSet usable;
};

// The smallest set of NUMA nodes (ties: lowest nodes) that can serve every demand; nullopt when no demand has NUMA
// nodes or none fits. At most 16 nodes are considered.
[[nodiscard]] std::optional<std::set<int>> smallest_numa_set(const std::vector<NumaDemand>& demands);

// Adds one resource's answer, without mounts and annotations, to the grant of a container. Existing values win; a
// different one is recorded in ContainerGrant::conflicts. Source: pod_devices.go deviceRunContainerOptions.
void merge_response(ContainerGrant& grant, const std::string& resource,
                    const v1beta1::ContainerAllocateResponse& response);

// Numbers first, by value, then other text, by bytes.
[[nodiscard]] std::vector<std::string> in_reading_order(const IdSet& ids);

// The kubelet's device-plugins/kubelet_internal_checkpoint. Passive data.
struct CheckpointEntry {
  std::string pod_uid, container, resource;
  std::map<std::int64_t, std::vector<std::string>> ids_by_numa;  // -1: no topology; a device on two nodes is in both
  std::string response;                                          // serialised v1beta1.ContainerAllocateResponse
};

struct Checkpoint {
  std::vector<CheckpointEntry> entries;
  std::map<std::string, std::vector<std::string>> registered;  // resource → its healthy ids
};

// The JSON of the real file (Go's spelling: no entries is null, bytes are base64, NUMA nodes are strings). The
// checksum, which only Go can compute, is 0. Ends without a newline.
[[nodiscard]] std::string encode_checkpoint(const Checkpoint& checkpoint);

// The inverse, with all that a kubelet keeps, unlike plugin/kubelet/checkpoint.h. Errors: data_corrupt.
[[nodiscard]] Result<Checkpoint> decode_checkpoint(const std::string& text);

// Replaces `path` by rename of a temporary file in the same directory (".tmp…"), so that its inode changes each time.
// Blocks on file writes. Errors: from errno.
[[nodiscard]] Result<void> write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Errors: not_found, data_corrupt, or from errno.
[[nodiscard]] Result<Checkpoint> read_checkpoint(const std::string& path);

}  // namespace neuron::sim
