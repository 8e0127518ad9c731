#pragma once

#include <string>
#include <vector>

#include "tools/neuron-top/table.h"
#include "tools/neuron-top/view_model.h"
#include "tools/neuron-top/view_state.h"

// "Memory Usage Details": devices, below them their logical cores, below those the kinds of memory. A parent shows what
// the driver says of it, so its children need not add up to it where some kind is unknown. Pure functions.
namespace neuron::top {

[[nodiscard]] Table memory_table(const ViewModel& model, const ViewState& state);

// Keys of all devices and cores of the tree, whether or not their parent is open.
[[nodiscard]] std::vector<std::string> memory_nodes(const ViewModel& model, const ViewState& state);

// One kind of memory, or several that people do not tell apart, added up.
struct MemoryKind {
  std::string name;  // "Model Code"
  std::optional<std::uint64_t> bytes;
};

// The five kinds of the official tool in its order, then the rest as "Other". A kind that is unknown on one of `parts`
// is unknown.
[[nodiscard]] std::vector<MemoryKind> device_kinds(const std::vector<model::DeviceMemory>& parts);
// Tensors, constants, DMA buffers, application memory, other.
[[nodiscard]] std::vector<MemoryKind> host_kinds(const std::vector<model::HostMemory>& parts);

}  // namespace neuron::top
