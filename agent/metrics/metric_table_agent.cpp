#include <array>

#include "agent/metrics/metric_table.h"

// What the agent tells of the kernel log, of itself and of what it offers.
namespace neuron::metrics {
namespace {

using enum MetricType;

constexpr auto kKernelLog = std::to_array<Metric>({
    {"neuron_kernel_log_reading", gauge, "", Held::no, "1: the kernel log is read; 0: it cannot be read", "the reader"},
    {"neuron_kernel_log_lost_records_total", counter, "", Held::no,
     "Records that the kernel overwrote before they were read", "the records' numbers"},
    {"neuron_kernel_log_ignored_lines_total", counter, "", Held::no,
     "Hardware error lines that are malformed or name an unknown device, core or serial number", "the lines"},
    {"neuron_kernel_log_errors_total", counter, "neuron_device_index, physical_core, kind", Held::yes,
     "Hardware error lines: kind is sram, core, hbm, hbm_repairable, dma, collectives or other; device and core are "
     "empty where the lines name none",
     "the lines"},
    {"neuron_kernel_log_healthy", gauge, "", Held::no,
     "Verdict on lines that name no device: 1 healthy or degraded, 0 unhealthy; absent while unknown",
     "the verdict of the health policy"},
    {"neuron_kernel_log_health_info", info, "state, reason", Held::no, "The verdict on lines that name no device",
     "the verdict of the health policy"},
});

constexpr auto kAgent = std::to_array<Metric>({
    {"neuron_agent_build_info", info, "version", Held::no, "The agent's version", "the program"},
    {"neuron_agent_start_time_seconds", gauge, "", Held::no, "When the process started, in Unix time", "the program"},
    {"neuron_agent_scans_total", counter, "", Held::no, "Scans of the machine", "the monitor"},
    {"neuron_agent_last_scan_seconds", gauge, "", Held::no, "How long the newest scan took", "the monitor"},
    {"neuron_agent_scan_unanswered", gauge, "", Held::no, "Parts of the machine whose read hangs", "the newest scan"},
    {"neuron_agent_scan_problems", gauge, "", Held::no,
     "Unreadable files of the host (32 at most) and of each device and interface (8 at most)", "the newest scan"},
    {"neuron_agent_usage_age_seconds", gauge, "", Held::no,
     "Age of the newest sample of counters, or of the first scrape if there is none yet; beyond 90 s values from "
     "samples are absent",
     "the sampler"},
    {"neuron_agent_units", gauge, "resource", Held::no, "Units listed to the kubelet", "the list"},
    {"neuron_agent_units_healthy", gauge, "resource", Held::no, "Units listed as healthy", "the list"},
    {"neuron_agent_units_held", gauge, "resource", Held::no,
     "Units that containers hold through this resource; some of them may be unhealthy", "the ledger"},
    {"neuron_agent_units_free", gauge, "resource", Held::no, "Units listed as healthy that no container holds",
     "the list, the ledger"},
    {"neuron_agent_largest_request_units", gauge, "resource", Held::no,
     "Largest request that could still be met with connected units; below half of the free units the node is "
     "fragmented",
     "the allocator"},
    {"neuron_agent_registered", gauge, "resource", Held::no, "1: registered with the kubelet; 0: not", "the plugin"},
    {"neuron_agent_registrations_total", counter, "resource", Held::no, "Registrations with the kubelet", "the plugin"},
    {"neuron_agent_allocations_total", counter, "resource", Held::no, "Containers that were allocated units",
     "the plugin"},
    {"neuron_agent_refusals_total", counter, "reason", Held::no, "Refused calls by reason; every reason starts at 0",
     "the plugin ([reasons](#refusals))"},
    {"neuron_agent_call_seconds", histogram, "method", Held::no, "How long the kubelet's calls took", "the plugin"},
    {"neuron_agent_calls_failed_total", counter, "method", Held::no, "Calls of the kubelet that failed", "the plugin"},
    {"neuron_agent_api_calls_total", counter, "outcome", Held::no, "Calls to the API server", "the API client"},
});

}  // namespace

std::span<const Metric> kernel_log_metrics() {
  return kKernelLog;
}

std::span<const Metric> agent_metrics() {
  return kAgent;
}

}  // namespace neuron::metrics
