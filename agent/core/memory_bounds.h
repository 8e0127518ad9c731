#pragma once

#include <cstdint>
#include <optional>

#include "agent/model/host_scan.h"
#include "agent/model/usage.h"

// Memory counters that cannot be true. Whoever writes to a memory counter clears it, and what is freed after that takes
// it below zero, which reads as almost 2^64 (docs/reference/driver.md#reading-counters). Such a value is unknown. Pure
// functions; any thread.
namespace neuron::core {

// Bytes; more than any machine or device has. The bound where the size itself is unknown; the sum of thousands of
// values below it still fits into 64 bits.
inline constexpr std::uint64_t kMoreThanAnyMemory = std::uint64_t{1} << 50U;

// Empties what exceeds the device's memory (NeuronDevice::memory_bytes), and of host memory what exceeds the instance
// type's. A counter of a core is named in the device's problems. `scan` is completed, see complete.h, which calls this.
void forget_impossible_memory(model::HostScan& scan);

// The same of a sample; `scan` tells the devices' memory, the sample itself the machine's.
void forget_impossible_memory(model::UsageSample& sample, const model::HostScan& scan);

// Adds to a sum, which is unknown as soon as one part is, or when it no longer fits.
inline void add_bytes(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& part) {
  std::uint64_t result = 0;
  if (sum && part && !__builtin_add_overflow(*sum, *part, &result))
    sum = result;
  else
    sum.reset();
}

}  // namespace neuron::core
