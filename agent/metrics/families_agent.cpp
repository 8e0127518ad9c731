#include <cstdint>
#include <limits>
#include <string>

#include "agent/metrics/families_parts.h"

namespace neuron::metrics {
namespace {

// Of a map from a label's value to a count.
void add_counts(const std::map<std::string, std::uint64_t>& counts, const std::string& label,
                FamilySet::Family family) {
  for (const auto& [value, count] : counts) family.add({{label, value}}, static_cast<double>(count));
}

// Empty where bounds and counts do not belong together.
prometheus::ClientMetric::Histogram histogram_of(const Durations& durations) {
  prometheus::ClientMetric::Histogram histogram;
  if (durations.counts.size() != durations.bounds.size() + 1) return histogram;
  for (std::size_t i = 0; i < durations.counts.size(); ++i) {
    histogram.sample_count += durations.counts[i];
    const bool last = i == durations.bounds.size();
    const double bound = last ? std::numeric_limits<double>::infinity() : durations.bounds[i];
    histogram.bucket.push_back({histogram.sample_count, bound});
  }
  histogram.sample_sum = durations.sum_seconds;
  return histogram;
}

void add_scan(const Scrape& scrape, FamilySet& families) {
  families["neuron_agent_scans_total"].add({}, static_cast<double>(scrape.input.agent.scans));
  families["neuron_agent_last_scan_seconds"].add({}, scrape.input.agent.last_scan_seconds);
  if (const auto age = scrape.input.usage_age) families["neuron_agent_usage_age_seconds"].add({}, age->count());
  if (scrape.input.snapshot == nullptr) return;
  std::size_t problems = scrape.host.problems.size();
  for (const model::NeuronDevice& device : scrape.host.devices) problems += device.problems.size();
  for (const model::EfaInterface& efa : scrape.host.efas) problems += efa.problems.size();
  families["neuron_agent_scan_unanswered"].add({}, static_cast<double>(scrape.host.unanswered.size()));
  families["neuron_agent_scan_problems"].add({}, static_cast<double>(problems));
}

void add_offered(const Offered& offered, FamilySet& families) {
  const Labels labels{{"resource", std::string(resource_name(offered.resource))}};
  families["neuron_agent_units"].add(labels, offered.units);
  families["neuron_agent_units_healthy"].add(labels, offered.healthy);
  families["neuron_agent_units_held"].add(labels, offered.held);
  families["neuron_agent_units_free"].add(labels, offered.free);
  if (offered.largest_request) families["neuron_agent_largest_request_units"].add(labels, *offered.largest_request);
}

}  // namespace

void add_agent(const Scrape& scrape, FamilySet& families) {
  const AgentFigures& agent = scrape.input.agent;
  families["neuron_agent_build_info"].add({{"version", agent.version}}, 1);
  families["neuron_agent_start_time_seconds"].add({}, agent.start_time_seconds);
  add_scan(scrape, families);
  for (const Offered& offered : scrape.input.offered) add_offered(offered, families);
  for (const auto& [resource, registered] : agent.registered) {
    families["neuron_agent_registered"].add({{"resource", resource}}, registered ? 1 : 0);
  }
  add_counts(agent.registrations, "resource", families["neuron_agent_registrations_total"]);
  add_counts(agent.allocations, "resource", families["neuron_agent_allocations_total"]);
  add_counts(agent.refusals, "reason", families["neuron_agent_refusals_total"]);
  add_counts(agent.calls_failed, "method", families["neuron_agent_calls_failed_total"]);
  add_counts(agent.api_calls, "outcome", families["neuron_agent_api_calls_total"]);
  for (const auto& [method, durations] : agent.calls) {
    auto histogram = histogram_of(durations);
    if (!histogram.bucket.empty())
      families["neuron_agent_call_seconds"].add({{"method", method}}, std::move(histogram));
  }
}

}  // namespace neuron::metrics
