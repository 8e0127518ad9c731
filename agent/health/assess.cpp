#include "agent/health/assess.h"

#include <utility>

#include "agent/core/complete.h"
#include "agent/health/missing.h"

namespace neuron::health {

Assessment assess(model::HostScan scan, AssessMemory& memory, SteadyTime now) {
  core::keep_last_seen(scan, memory.seen);
  Assessment result;
  result.host = core::complete(std::move(scan));
  const std::vector<MissingFiles> missing = missing_everywhere(result.host);
  HealthResult health = judge(result.host, memory.health, now);
  for (const MissingFiles& files : missing) result.host.problems.push_back(problem_line(result.host, files));
  result.devices = std::move(health.devices);
  result.cores = std::move(health.cores);
  result.efas = std::move(health.efas);
  return result;
}

}  // namespace neuron::health
