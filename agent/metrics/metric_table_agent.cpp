#include <array>

#include "agent/metrics/metric_table.h"

// What the agent tells of itself and of what it offers.
namespace neuron::metrics {
namespace {

using enum MetricType;

constexpr auto kAgent = std::to_array<Metric>({
    {"neuron_agent_build_info", info, "version", Held::no, "The agent's version", "the program"},
    {"neuron_agent_scans_total", counter, "", Held::no, "Scans of the machine", "the monitor"},
    {"neuron_agent_last_scan_seconds", gauge, "", Held::no, "How long the newest scan took", "the monitor"},
    {"neuron_agent_scan_unanswered", gauge, "", Held::no, "Parts of the machine whose reading hangs",
     "the newest scan"},
    {"neuron_agent_scan_problems", gauge, "", Held::no,
     "Files that could not be read though they should, of the host, its devices and interfaces; 32 and 8 each at most",
     "the newest scan"},
    {"neuron_agent_usage_age_seconds", gauge, "", Held::no,
     "Age of the newest sample of counters; beyond 90 s what comes from samples is left out", "the sampler"},
    {"neuron_agent_units", gauge, "resource", Held::no, "Units that the kubelet is told of", "the list"},
    {"neuron_agent_units_healthy", gauge, "resource", Held::no, "Units that the kubelet is told of as healthy",
     "the list"},
    {"neuron_agent_units_held", gauge, "resource", Held::no, "Units that containers hold", "the ledger"},
    {"neuron_agent_largest_request_units", gauge, "resource", Held::no,
     "The largest request that could still be met with units that belong together: below the free ones, the node is "
     "fragmented",
     "the allocator"},
    {"neuron_agent_registered", gauge, "resource", Held::no, "1: registered with the kubelet; 0: not", "the plugin"},
    {"neuron_agent_registrations_total", counter, "resource", Held::no, "Registrations with the kubelet", "the plugin"},
    {"neuron_agent_allocations_total", counter, "resource", Held::no, "Containers that were given units", "the plugin"},
    {"neuron_agent_refusals_total", counter, "reason", Held::no, "Calls that were refused, by reason", "the plugin"},
    {"neuron_agent_call_seconds", histogram, "method", Held::no, "How long the kubelet's calls took", "the plugin"},
    {"neuron_agent_calls_failed_total", counter, "method", Held::no, "Calls of the kubelet that failed", "the plugin"},
    {"neuron_agent_api_calls_total", counter, "outcome", Held::no, "Calls to the API server", "the API client"},
});

}  // namespace

std::span<const Metric> agent_metrics() {
  return kAgent;
}

}  // namespace neuron::metrics
