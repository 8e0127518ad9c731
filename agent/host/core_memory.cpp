#include "agent/host/core_memory.h"

#include <array>
#include <string>

#include "agent/base/parse.h"

namespace neuron::host {

std::optional<std::uint64_t> process_memory_of_core(const FsRoot& root, int device, int physical_core,
                                                    std::optional<std::uint64_t> limit) {
  constexpr std::uint64_t kNoDeviceHasMore = std::uint64_t{1} << 48U;
  constexpr std::array kKinds = {
      "tensors",        "constants",  "model_code", "model_shared_scratchpad", "nonshared_scratchpad",
      "runtime_memory", "collectives"};
  const std::string folder = "sys/class/neuron_device/neuron" + std::to_string(device) + "/neuron_core" +
                             std::to_string(physical_core) + "/stats/memory_usage/device_mem/";
  std::optional<std::uint64_t> sum;
  for (const char* kind : kKinds) {
    const auto text = root.read_attribute(folder + kind + "/total");
    const auto bytes = text ? parse_u64(*text) : std::nullopt;
    if (bytes && *bytes <= limit.value_or(kNoDeviceHasMore)) sum = sum.value_or(0) + *bytes;
  }
  return sum;
}

}  // namespace neuron::host
