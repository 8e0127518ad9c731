#include "agent/model/health.h"
#include "agent/model/host_scan.h"

namespace neuron::model {

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
