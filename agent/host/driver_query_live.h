#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "agent/host/driver_query.h"

namespace neuron::host {

// Asks the driver behind the open node `fd` of device `device_index`. Questions it refuses stay unanswered.
// May block inside the driver.
[[nodiscard]] DriverAnswers ask_driver(int fd, int device_index);

// Size of the answer to ioctl 106, and most entries of ioctl 120 (docs/reference/driver.md#ioctls).
inline constexpr std::size_t kBdfAnswerBytes = 16;
inline constexpr std::size_t kMaxCoreMapEntries = 128;

// The two answers as the driver lays them out, little endian; exposed for tests on machines without the driver.
// u32 index, u32 domain, u32 bus, u8 slot, u8 function; nullopt when a number is outside what PCI knows.
[[nodiscard]] std::optional<model::Bdf> decode_bdf_answer(std::span<const std::uint8_t, kBdfAnswerBytes> answer);
// words[0] = count, then pairs {device, physical core} in logical order over all devices. The part of `device_index`;
// nullopt when it has none, or when the count or a core is out of bounds.
[[nodiscard]] std::optional<std::vector<int>> decode_core_map(std::span<const std::uint32_t> words, int device_index);

}  // namespace neuron::host
