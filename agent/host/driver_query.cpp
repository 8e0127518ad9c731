#include "agent/host/driver_query.h"

#include "agent/host/driver_query_live.h"
#include "agent/host/driver_query_recorded.h"
#include "agent/host/problems.h"

namespace neuron::host {
namespace {

constexpr std::size_t kMaxRecordedBytes = std::size_t{1} << 20U;

DriverAnswers read_recorded(const FsRoot& root, int device_index) {
  const std::string path = "neuron-ioctl/neuron" + std::to_string(device_index) + ".json";
  const auto text = root.read_file(path, kMaxRecordedBytes);
  if (text) return parse_recorded_answers(*text, path);
  DriverAnswers answers;
  if (!is_absent(text.error())) answers.problems.push_back(problem_with(path, text.error()));
  return answers;
}

}  // namespace

DriverAnswers query_driver(const FsRoot& root, int device_index) {
  if (!root.is_live()) return read_recorded(root, device_index);
  const auto node = root.open_device("dev/neuron" + std::to_string(device_index));
  if (!node) return {};  // no node, or the device cgroup refuses: an unanswered question, not a fault
  return ask_driver(node->get(), device_index);
}

}  // namespace neuron::host
