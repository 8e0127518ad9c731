#pragma once

#include <cstdint>
#include <optional>

#include "agent/host/fs_root.h"

namespace neuron::host {

// Bytes of device memory that processes own on one physical core right now: the kinds tensors, constants, model_code,
// model_shared_scratchpad, nonshared_scratchpad, runtime_memory and collectives of
// sys/class/neuron_device/neuron<device>/neuron_core<core>/stats/memory_usage/device_mem/<kind>/total. The driver's own
// memory (driver_memory, notifications, dma_rings) is left out. Live in every driver version. A kind with more than
// `limit`, the device's memory, is unknown: such a counter went below zero (docs/reference/driver.md#reading-counters).
// nullopt: no kind is known. Any thread; blocks on file reads.
[[nodiscard]] std::optional<std::uint64_t> process_memory_of_core(const FsRoot& root, int device, int physical_core,
                                                                  std::optional<std::uint64_t> limit = std::nullopt);

}  // namespace neuron::host
