#include "agent/model/health.h"
#include "agent/model/host_scan.h"
#include "agent/model/usage.h"

namespace neuron::model {
namespace {

constexpr std::array<std::string_view, kHostMemoryKinds> kHostKindNames{
    "dma_buffers",   "tensors",       "constants", "application_memory",
    "driver_memory", "notifications", "dma_rings", "uncategorized"};

constexpr std::array<std::string_view, kDeviceMemoryKinds> kDeviceKindNames{
    "model_code",     "tensors",       "constants",    "model_shared_scratchpad",
    "runtime_memory", "driver_memory", "collectives",  "nonshared_scratchpad",
    "notifications",  "dma_rings",     "uncategorized"};

}  // namespace

std::string_view to_string(HostMemoryKind kind) {
  return kHostKindNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(DeviceMemoryKind kind) {
  return kDeviceKindNames.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(DriverLayout layout) {
  switch (layout) {
    case DriverLayout::none:
      return "none";
    case DriverLayout::bare:
      return "bare";
    case DriverLayout::stats:
      return "stats";
    case DriverLayout::health_v1:
      return "health_v1";
    case DriverLayout::health_v2:
      return "health_v2";
    case DriverLayout::unknown:
      return "unknown";
  }
  return "unknown";
}

std::string_view to_string(HealthState state) {
  switch (state) {
    case HealthState::healthy:
      return "healthy";
    case HealthState::degraded:
      return "degraded";
    case HealthState::unhealthy:
      return "unhealthy";
    case HealthState::unknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace neuron::model
