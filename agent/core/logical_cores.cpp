#include "agent/core/logical_cores.h"

#include <algorithm>

namespace neuron::core {
namespace {

// The driver knows at most 64 devices of 8 cores (neuron-driver.md §2); anything far beyond is not a core count.
constexpr int kMaxCores = 64;
constexpr int kMaxIndex = 1023;

}  // namespace

std::optional<int> logical_cores_of(const model::NeuronDevice& device, const model::HostScan& scan) {
  if (!device.physical_cores || !scan.lnc) return std::nullopt;
  const int physical = device.physical_cores->value;
  const int lnc = scan.lnc->value;
  if (lnc < 1 || physical < lnc || physical > kMaxCores) return std::nullopt;
  return physical / lnc;
}

int cores_per_device(const model::HostScan& scan) {
  int most = 0;
  for (const model::NeuronDevice& device : scan.devices) {
    most = std::max(most, logical_cores_of(device, scan).value_or(0));
  }
  return most;
}

std::vector<int> core_ids_of(const model::NeuronDevice& device, const model::HostScan& scan) {
  std::vector<int> ids;
  if (device.index < 0 || device.index > kMaxIndex) return ids;
  const int first = device.index * cores_per_device(scan);
  for (int i = 0; i < logical_cores_of(device, scan).value_or(0); ++i) ids.push_back(first + i);
  return ids;
}

}  // namespace neuron::core
