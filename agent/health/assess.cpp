#include "agent/health/assess.h"

#include <algorithm>
#include <utility>

#include "agent/core/complete.h"

namespace neuron::health {

Assessment assess(model::HostScan scan, AssessMemory& memory, SteadyTime now) {
  core::keep_last_seen(scan, memory.seen);
  Assessment result;
  result.host = core::complete(std::move(scan));
  HealthResult health = evaluate(result.host, memory.health, now);
  result.devices = std::move(health.devices);
  result.cores = std::move(health.cores);
  result.efas = std::move(health.efas);
  result.bases = std::move(health.bases);
  result.missing = std::move(health.missing);
  auto& problems = result.host.problems;
  for (const MissingFiles& files : result.missing) {
    model::ReadProblem problem = problem_of(result.host, files);
    const bool told = std::find(problems.begin(), problems.end(), problem) != problems.end();
    if (!told) problems.push_back(std::move(problem));
  }
  return result;
}

}  // namespace neuron::health
