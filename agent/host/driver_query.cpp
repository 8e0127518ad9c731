#include "agent/host/driver_query.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "agent/host/attributes.h"

namespace neuron::host {
namespace {

using Json = nlohmann::json;

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

constexpr std::size_t kMaxDepth = 16;        // the format needs 3
constexpr std::size_t kMaxProcesses = 1024;  // the driver allows 16 per device

// Bounds the nesting before parsing: the parser does not recurse, but visitors of its result may.
bool is_too_deep(std::string_view text) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

// A whole number from `min` to `max`; 2^64, -1 and 1.5 are none.
std::optional<std::uint64_t> whole_number(const Json* value, std::uint64_t min, std::uint64_t max) {
  if (value == nullptr || !value->is_number_integer()) return std::nullopt;
  if (!value->is_number_unsigned() && value->get<std::int64_t>() < 0) return std::nullopt;
  const auto number = value->get<std::uint64_t>();
  if (number < min || number > max) return std::nullopt;
  return number;
}

const Json* member(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

// A number that may be left out, then 0.
std::optional<std::uint64_t> optional_number(const Json& object, const char* key, std::uint64_t max) {
  const Json* value = member(object, key);
  return value == nullptr ? std::optional<std::uint64_t>(0) : whole_number(value, 0, max);
}

std::optional<model::Process> parse_process(const Json& entry) {
  constexpr auto kAny = std::numeric_limits<std::uint64_t>::max();
  if (!entry.is_object()) return std::nullopt;
  const auto pid = whole_number(member(entry, "pid"), 1, std::numeric_limits<int>::max());
  const auto mask = optional_number(entry, "nc_lock_map", 255);
  const auto host = optional_number(entry, "host_mem_bytes", kAny);
  const auto device = optional_number(entry, "device_mem_bytes", kAny);
  if (!pid || !mask || !host || !device) return std::nullopt;
  return model::Process{static_cast<int>(*pid), static_cast<std::uint8_t>(*mask), *host, *device};
}

std::optional<std::vector<model::Process>> parse_processes(const Json& value) {
  if (!value.is_array() || value.size() > kMaxProcesses) return std::nullopt;
  std::vector<model::Process> processes;
  for (const Json& entry : value) {
    auto process = parse_process(entry);
    if (!process) return std::nullopt;
    processes.push_back(*process);
  }
  return processes;
}

// False for a number that no core has, or that is there already.
bool add_core(std::optional<std::uint64_t> core, std::vector<int>& cores) {
  if (!core || *core >= kMaxCores || std::ranges::find(cores, static_cast<int>(*core)) != cores.end()) return false;
  cores.push_back(static_cast<int>(*core));
  return true;
}

std::optional<std::vector<int>> parse_core_map(const Json& value) {
  if (!value.is_array() || value.empty() || value.size() > kMaxCores) return std::nullopt;
  std::vector<int> cores;
  for (const Json& entry : value) {
    if (!add_core(whole_number(&entry, 0, kMaxCores - 1), cores)) return std::nullopt;
  }
  return cores;
}

std::optional<model::Bdf> parse_bdf_value(const Json& value) {
  const auto* text = value.get_ptr<const std::string*>();
  return text == nullptr ? std::nullopt : model::parse_bdf(*text);
}

template <typename T>
void take(const Json& object, const char* key, std::optional<T> (*parse)(const Json&), const char* expected,
          std::string_view path, std::optional<T>& into, std::vector<model::ReadProblem>& problems) {
  const Json* value = member(object, key);
  if (value == nullptr || value->is_null()) return;
  into = parse(*value);
  if (into) return;
  problems.push_back({model::ProblemKind::file, std::string(path), std::string("\"") + key + "\" is not " + expected});
}

DriverAnswers read_recorded(const FsRoot& root, int device_index) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;
  const std::string path = "neuron-ioctl/neuron" + std::to_string(device_index) + ".json";
  const auto text = root.read_file(path, kMaxBytes);
  if (text) return parse_recorded_answers(*text, path);
  DriverAnswers answers;
  if (!is_absent(text.error())) answers.problems.push_back(problem_with(path, text.error()));
  return answers;
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
    if (!add_core(words[2 + 2 * entry], cores)) return std::nullopt;
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

DriverAnswers parse_recorded_answers(std::string_view text, std::string_view path) {
  DriverAnswers answers;
  const auto reject = [&](std::string_view reason) {
    answers.problems.push_back({model::ProblemKind::file, std::string(path), std::string(reason)});
    return answers;
  };
  if (is_too_deep(text)) return reject("nested too deeply for a recorded driver answer");
  const Json root = Json::parse(text, nullptr, false);
  if (root.is_discarded()) return reject("not complete JSON");
  if (!root.is_object()) return reject("not a JSON object");
  take(root, "bdf", parse_bdf_value, "a PCI address such as 0000:10:1b.0", path, answers.bdf, answers.problems);
  take(root, "apps", parse_processes, "a list of processes with pid, nc_lock_map, host_mem_bytes, device_mem_bytes",
       path, answers.processes, answers.problems);
  take(root, "logical_to_physical", parse_core_map, "a list of different core numbers", path,
       answers.logical_to_physical, answers.problems);
  return answers;
}

DriverAnswers query_driver(const FsRoot& root, int device_index) {
  if (!root.is_live()) return read_recorded(root, device_index);
  const auto node = root.open_device("dev/neuron" + std::to_string(device_index));
  if (!node) return {};  // no node, or refused by the device cgroup: unanswered, not a fault
  return ask_driver(node->get(), device_index);
}

}  // namespace neuron::host
