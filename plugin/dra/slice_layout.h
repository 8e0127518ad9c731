#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/slice.h"

// From a pool to slices that a server takes: what it knows differs by version and by feature gates, and what a gate
// forbids it drops without a word (docs/reference/dra.md#server-versions). Pure.
namespace neuron::plugin::dra {

struct ServerVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend auto operator<=>(const ServerVersion&, const ServerVersion&) = default;
};

[[nodiscard]] std::string to_string(const ServerVersion& version);  // "1.36.2"
// Of a gitVersion or kubeletVersion: "v1.36.2", "v1.34.3+k3s1", "v1.35.6-eks-3025e55"; nullopt for other text.
[[nodiscard]] std::optional<ServerVersion> parse_server_version(std::string_view text);

enum class SliceShape {
  plain,     // whole devices and interfaces: no counters, so nothing that overlaps
  combined,  // counters and all that use them in one slice (1.34)
  split,     // counters in a slice of their own (from 1.35)
};

// What a server can do by its version alone; whether its gates are on shows only in what it stores.
// Errors: failed_precondition below 1.34, in words.
[[nodiscard]] Result<SliceShape> shape_for(const ServerVersion& server);
// Errors: failed_precondition for a kubelet that loses a driver for good after half an hour (1.34.0, 1.34.1) or knows
// none of our protocols.
[[nodiscard]] Result<void> check_kubelet(const ServerVersion& kubelet);

struct LayoutOptions {
  SliceShape shape = SliceShape::split;
  bool taints = true;  // the server keeps them
};

struct Layout {
  std::vector<SliceContent> slices;   // in the order of their names; empty: nothing to publish
  std::vector<std::string> left_out;  // sentences: what of the pool is not in them, and why
};

// Fills slices within the limits of docs/reference/dra.md#limits. Without counters, cores and groups stay only where a
// claim holds them, and then what overlaps with them goes; without taints, what is unhealthy and not held goes.
[[nodiscard]] Layout lay_out(const Pool& pool, const LayoutOptions& options);

}  // namespace neuron::plugin::dra
