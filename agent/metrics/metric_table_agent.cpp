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
    {"neuron_agent_kernel_log_readable", gauge, "", Held::no,
     "1: health goes by the kernel log too; 0: it should, and it cannot be read; none where nobody asked for it",
     "`dev/kmsg`, the system call syslog"},
    {"neuron_agent_kernel_log_errors_total", counter, "neuron_device_index, kind", Held::no,
     "Lines NEURON_HW_ERR= since the driver was loaded, as far as the kernel still had them; of no device where they "
     "name none",
     "the same ([health](health.md#the-kernel-log))"},
    {"neuron_agent_kernel_log_ignored_total", counter, "", Held::no,
     "Such lines that make no sense, or name what is not there", "the same"},
    {"neuron_agent_kernel_log_lost_total", counter, "", Held::no,
     "Records that the kernel overwrote before they were read", "the same"},
    {"neuron_node_healthy", gauge, "", Held::no,
     "0: the kernel log tells an error of hardware and names no device; 1: it tells none; none where it is not read",
     "the same"},
    {"neuron_node_health_info", info, "state, reason", Held::no,
     "What the kernel log tells of no device in particular; reason is empty when healthy", "the same"},
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
