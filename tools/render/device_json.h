#pragma once

#include <string>

#include "tools/render/node_view.h"

namespace neuron::render {

// The array that the official `neuron-ls -j` writes up to SDK 2.33 (docs/reference/official-tools.md#neuron-ls-json):
// 4-space indent, no final newline, numa_node a string, connected_to null without neighbours, bytes for memory_size.
// instance_type and instance_id are left out when unknown, logical_neuroncore_config where the family has no choice.
// Unknown strings are "NA", unknown nc_count and memory_size null. Valid UTF-8 whatever the commands hold. Pure, any
// thread.
[[nodiscard]] std::string device_json(const NodeView& view);

}  // namespace neuron::render
