#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "agent/host/fs_root.h"
#include "agent/model/device.h"

namespace neuron::host {

// Answers of the Neuron driver outside of files (docs/fixtures.md#recorded-answers). Every member nullopt: no answer,
// which is normal in an unprivileged pod.
struct DriverAnswers {
  std::optional<model::Bdf> bdf;                         // ioctl DEVICE_BDF_EXT (106), node opened O_WRONLY
  std::optional<std::vector<model::Process>> processes;  // ioctl 7 needs an attaching open: recorded answers only
  std::optional<std::vector<int>> logical_to_physical;   // ioctl 120, O_WRONLY; [logical position] = physical core
  std::vector<model::ReadProblem> problems;              // malformed answers
  friend bool operator==(const DriverAnswers&, const DriverAnswers&) = default;
};

// Queries the driver for one device: on a live root by ioctl on dev/neuron<index> opened O_WRONLY|O_NONBLOCK, else from
// neuron-ioctl/neuron<index>.json (bounded to 1 MiB). Any thread; may block inside the driver.
[[nodiscard]] DriverAnswers query_driver(const FsRoot& root, int device_index);

// Queries the driver behind the open node `fd`. Refused queries stay unanswered. May block inside the driver.
[[nodiscard]] DriverAnswers ask_driver(int fd, int device_index);

// Size of the answer to ioctl 106, and most entries of ioctl 120 (docs/reference/driver.md#ioctls).
inline constexpr std::size_t kBdfAnswerBytes = 16;
inline constexpr std::size_t kMaxCoreMapEntries = 128;

// The two answers in the driver's layout, little endian. Pure.
// u32 index, u32 domain, u32 bus, u8 slot, u8 function; nullopt when a number is outside of PCI's range.
[[nodiscard]] std::optional<model::Bdf> decode_bdf_answer(std::span<const std::uint8_t, kBdfAnswerBytes> answer);
// words[0] = count, then pairs {device, physical core} in logical order over all devices. The part of `device_index`;
// nullopt when it has none, or when the count or a core is out of bounds.
[[nodiscard]] std::optional<std::vector<int>> decode_core_map(std::span<const std::uint32_t> words, int device_index);

// Answers recorded as JSON (docs/fixtures.md#recorded-answers), foreign text. A missing key is an unanswered question;
// a malformed one is unanswered too and named in `problems` with `path`, while the other keys still count. Pure.
[[nodiscard]] DriverAnswers parse_recorded_answers(std::string_view text, std::string_view path);

}  // namespace neuron::host
