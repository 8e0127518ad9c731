#pragma once

#include <string>
#include <vector>

#include "plugin/dra/slices/slice.h"

// From a pool to slices that a server takes: what it knows differs by version and by feature gates, and what a gate
// forbids it drops without a word (docs/reference/dra.md#server-versions). Pure.
namespace neuron::plugin::dra {

enum class SliceShape {
  plain,     // whole devices and interfaces: no counters, so nothing that overlaps
  combined,  // counters and all that use them in one slice (1.34)
  split,     // counters in a slice of their own (from 1.35)
};

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
