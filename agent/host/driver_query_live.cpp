#include "agent/host/driver_query_live.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "agent/host/attributes.h"

namespace neuron::host {
namespace {

// Numbers as the driver compiles them: several encode the size of a pointer where a struct is passed
// (docs/reference/driver.md#ioctls).
constexpr unsigned long kDeviceBdfExt = 0x80084e6a;
constexpr unsigned long kLogicalToPhysicalMap = 0xc0104e78;

struct CoreMapRequest {
  std::uint64_t map = 0;  // address of the words the driver fills
  std::uint32_t max_entries = 0;
  std::uint32_t mapping_version = 0;
};
static_assert(sizeof(CoreMapRequest) == 16);

std::uint32_t word_at(std::span<const std::uint8_t> bytes, std::size_t offset) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

}  // namespace

std::optional<model::Bdf> decode_bdf_answer(std::span<const std::uint8_t, kBdfAnswerBytes> answer) {
  const std::uint32_t domain = word_at(answer, 4);
  const std::uint32_t bus = word_at(answer, 8);
  if (domain > 0xffff || bus > 0xff || answer[12] > 0x1f || answer[13] > 7) return std::nullopt;
  return model::Bdf{domain, static_cast<std::uint8_t>(bus), answer[12], answer[13]};
}

std::optional<std::vector<int>> decode_core_map(std::span<const std::uint32_t> words, int device_index) {
  if (words.empty() || words[0] > kMaxCoreMapEntries || words.size() < 1 + 2 * std::size_t{words[0]})
    return std::nullopt;
  std::vector<int> cores;
  for (std::size_t entry = 0; entry < words[0]; ++entry) {
    if (words[1 + 2 * entry] != static_cast<std::uint32_t>(device_index)) continue;
    const std::uint32_t core = words[2 + 2 * entry];
    if (core >= kMaxCores || std::find(cores.begin(), cores.end(), static_cast<int>(core)) != cores.end()) {
      return std::nullopt;
    }
    cores.push_back(static_cast<int>(core));
  }
  if (cores.empty()) return std::nullopt;
  return cores;
}

DriverAnswers ask_driver(int fd, int device_index) {
  DriverAnswers answers;
  // The index in the request counts from the opened node, so 0 is the device itself. All bits set marks "not answered".
  std::array<std::uint8_t, kBdfAnswerBytes> bdf{};
  std::fill(bdf.begin() + 4, bdf.end(), std::uint8_t{0xff});
  if (::ioctl(fd, kDeviceBdfExt, bdf.data()) == 0) answers.bdf = decode_bdf_answer(bdf);

  std::array<std::uint32_t, 1 + 2 * kMaxCoreMapEntries> words{};
  CoreMapRequest request;
  request.map = reinterpret_cast<std::uintptr_t>(words.data());
  request.max_entries = kMaxCoreMapEntries;
  if (::ioctl(fd, kLogicalToPhysicalMap, &request) == 0)
    answers.logical_to_physical = decode_core_map(words, device_index);
  return answers;
}

}  // namespace neuron::host
