#include "agent/core/assess.h"

#include <utility>

#include "agent/core/complete.h"

namespace neuron::core {

Assessment assess(model::HostScan scan, AssessMemory& memory) {
  keep_last_seen(scan, memory.seen);
  Assessment result;
  result.host = complete(std::move(scan));
  HealthResult health = judge(result.host, memory.health);
  result.devices = std::move(health.devices);
  result.efas = std::move(health.efas);
  return result;
}

}  // namespace neuron::core
