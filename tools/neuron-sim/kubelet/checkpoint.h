#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/base/result.h"

namespace neuron::sim {

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

// The inverse; unknown members are ignored. Errors: data_corrupt.
[[nodiscard]] Result<Checkpoint> decode_checkpoint(const std::string& text);

// Replaces `path` by rename of a temporary file in the same directory (".tmp…"), so that its inode changes each time.
// Blocks on file writes. Errors: from errno.
[[nodiscard]] Result<void> write_checkpoint(const std::string& path, const Checkpoint& checkpoint);

// Errors: not_found, data_corrupt, or from errno.
[[nodiscard]] Result<Checkpoint> read_checkpoint(const std::string& path);

}  // namespace neuron::sim
