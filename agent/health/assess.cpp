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
  for (std::size_t i = 0; i < result.host.devices.size(); ++i) {
    model::NeuronDevice& device = result.host.devices[i];
    device.health = std::move(health.devices[i]);
    device.core_health = std::move(health.cores[i]);
    // keep_last_seen() puts it back with the device once that is missing.
    if (device.presence == model::Presence::present) memory.seen.devices[device.index].health = device.health;
  }
  for (std::size_t i = 0; i < result.host.efas.size(); ++i) result.host.efas[i].health = std::move(health.efas[i]);
  result.host.kernel_log.node_health = std::move(health.node);
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
