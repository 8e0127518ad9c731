#include "agent/metrics/families.h"

#include <array>

// EFA counters: docs/reference/efa.md#counters.
namespace neuron::metrics {
namespace {

using enum MetricType;

constexpr std::string_view kMemoryOfCore = "neuroncore, memory_location, runtime_tag";

constexpr auto kNeuronMonitor = std::to_array<Metric>({
    {"neuroncore_utilization_ratio", gauge, "neuroncore, runtime_tag", Held::yes,
     "Share of time that the core was busy, between the two newest samples",
     "`neuron_core<M>/stats/other_info/nc_time_in_use/total`, driver from 2.30.2"},
    {"neuroncore_memory_usage_constants", gauge, kMemoryOfCore, Held::yes, "Device memory of constants, in bytes",
     "`neuron_core<M>/stats/memory_usage/device_mem/constants/total`"},
    {"neuroncore_memory_usage_model_code", gauge, kMemoryOfCore, Held::yes, "Device memory of model code, in bytes",
     "`neuron_core<M>/stats/memory_usage/device_mem/model_code/total`"},
    {"neuroncore_memory_usage_model_shared_scratchpad", gauge, kMemoryOfCore, Held::yes,
     "Device memory of the scratchpad that models share, in bytes",
     "`neuron_core<M>/stats/memory_usage/device_mem/model_shared_scratchpad/total`"},
    {"neuroncore_memory_usage_runtime_memory", gauge, kMemoryOfCore, Held::yes,
     "Device memory of the runtime, in bytes", "`neuron_core<M>/stats/memory_usage/device_mem/runtime_memory/total`"},
    {"neuroncore_memory_usage_tensors", gauge, kMemoryOfCore, Held::yes, "Device memory of tensors, in bytes",
     "`neuron_core<M>/stats/memory_usage/device_mem/tensors/total`"},
    {"neuron_runtime_memory_used_bytes", gauge, "memory_location, runtime_tag", Held::yes,
     "Memory in use, per process where the driver reports it, else per container",
     "the driver's list of processes, else `neuron_core<M>/stats/memory_usage/{host_mem,device_mem}/total`"},
    {"neuron_runtime_vcpu_usage_ratio", gauge, "usage_type, runtime_tag", Held::no,
     "Share of all vCPUs that a process with a Neuron device used, between the two newest samples",
     "`proc/<pid>/stat`, in the host's PID namespace only"},
    {"execution_status_total", counter, "status_type, runtime_tag, neuroncore", Held::yes,
     "Executions on a core by result",
     "`neuron_core<M>/stats/status/*/total`, driver from 2.30.2 ([files](#executions))"},
    {"execution_errors_total", counter, "error_type, runtime_tag, neuroncore", Held::yes,
     "Executions on a core that failed, by kind of error",
     "`neuron_core<M>/stats/status/*/total`, driver from 2.30.2 ([files](#executions))"},
    {"hardware_ecc_events_total", counter, "event_type, neuron_device_index", Held::yes,
     "ECC events of a device since its driver was loaded",
     "`stats/hardware/{mem,sram}_ecc_{corrected,uncorrected}`, corrected from driver 2.30.2"},
    {"system_vcpu_count", gauge, "", Held::no, "vCPUs of the machine", "`proc/stat`"},
    {"system_vcpu_usage_ratio", gauge, "usage_type", Held::no,
     "Share of all vCPUs in use, between the two newest samples", "`proc/stat`"},
    {"system_memory_total_bytes", gauge, "", Held::no, "Memory of the machine", "`proc/meminfo`"},
    {"system_memory_used_bytes", gauge, "", Held::no, "Memory that is not available to new programs", "`proc/meminfo`"},
    {"system_swap_total_bytes", gauge, "", Held::no, "Swap space", "`proc/meminfo`"},
    {"system_swap_used_bytes", gauge, "", Held::no, "Swap space in use", "`proc/meminfo`"},
    {"neuron_hardware_info", info, "neuron_device_count, neuroncore_per_device_count, neuron_device_memory_size",
     Held::no, "Devices of the machine, logical cores per device, and bytes of memory per device", "the scan"},
    {"instance_info", info, "", Held::no, "The instance", "`sys/devices/virtual/dmi/id/`"},
});

constexpr auto kDevices = std::to_array<Metric>({
    {"neuron_device_info", info, "family, serial, bdf, numa_node, driver_version", Held::yes,
     "Facts of a device; unknown labels are empty", "`info/`, PCI, the driver, `sys/module/neuron/version`"},
    {"neuron_device_present", gauge, "", Held::no,
     "1: the driver shows the device; 0: it vanished; absent while a read of it hangs", "`sys/class/neuron_device`"},
    {"neuron_device_healthy", gauge, "", Held::yes,
     "1: healthy or degraded; 0: unhealthy, taken out of allocatable; absent while unknown", "the verdict"},
    {"neuron_device_health_info", info, "state, reason", Held::yes,
     "The verdict on a device; reason is empty when healthy", "the verdict"},
    {"neuron_device_ecc_events_total", counter, "event_type", Held::yes,
     "ECC events of a device of every kind that its driver counts, by file name",
     "`stats/hardware/*_ecc_*`, `stats/hardware/health_status/*_ecc_err_count`"},
    {"neuron_device_hw_error_events_total", counter, "", Held::yes, "Hardware error events reported by the firmware",
     "`stats/hardware/health_status/hw_error_event`, driver from 2.28"},
    {"neuron_device_unhealthy_components", gauge, "", Held::yes,
     "Components of a device that the driver reports as unhealthy",
     "`stats/hardware/health_status/unhealthy_components`, driver from 2.30.2"},
    {"neuron_device_memory_bytes", gauge, "", Held::yes, "Memory of a device", "the tables of the device families"},
    {"neuron_device_memory_used_bytes", gauge, "", Held::yes, "Device memory in use on all cores of a device",
     "`neuron_core<M>/stats/memory_usage/device_mem/total`"},
    {"neuron_device_host_memory_used_bytes", gauge, "kind", Held::yes, "Host memory in use for a device, by kind",
     "`stats/memory_usage/host_mem/<kind>/total`"},
    {"neuron_device_power_ratio", gauge, "statistic", Held::yes,
     "Power of a device as a share of its maximum: min, avg and max of the last minute",
     "`stats/power/utilization`, driver from 2.21.37"},
    {"neuron_device_processes", gauge, "", Held::yes, "Processes that have the device open",
     "the driver's list of processes, else `proc/<pid>/fd`"},
});

constexpr auto kCores = std::to_array<Metric>({
    {"neuron_core_info", info, "physical_cores", Held::yes, "Physical cores behind the logical core",
     "the driver, else the order of the family"},
    {"neuron_core_healthy", gauge, "", Held::yes,
     "1: healthy or degraded; 0: unhealthy, taken out of allocatable; absent while unknown", "the verdict"},
    {"neuron_core_health_info", info, "state, reason", Held::yes,
     "The verdict on a core, the worst of its physical ones", "the verdict"},
    {"neuron_core_hw_errors_total", counter, "kind", Held::yes, "Executions that met a hardware error, by file name",
     "`stats/status/hw_*/total`"},
    {"neuron_core_busy_seconds_total", counter, "", Held::yes, "Time that the core was busy, mean of its physical ones",
     "`stats/other_info/nc_time_in_use/total`, driver from 2.30.2"},
    {"neuron_core_flops_total", counter, "", Held::yes, "Floating-point operations",
     "`stats/other_info/flop_count/total`, driver from 2.30.2"},
    {"neuron_core_inferences_total", counter, "", Held::yes, "Inferences",
     "`stats/other_info/inference_count/total`, driver from 2.30.2"},
    {"neuron_core_memory_used_bytes", gauge, "memory_location", Held::yes, "Memory in use: host, neuron_device",
     "`stats/memory_usage/{host_mem,device_mem}/total`"},
});

constexpr auto kEfas = std::to_array<Metric>({
    {"efa_info", info, "pci_device, numa_node, driver_version", Held::yes,
     "Facts of an interface; unknown labels are empty", "PCI, `sys/module/efa/version`"},
    {"efa_present", gauge, "", Held::no,
     "1: the interface is on the PCI bus; 0: it vanished; absent while a read of it hangs", "`sys/bus/pci/devices`"},
    {"efa_healthy", gauge, "", Held::yes,
     "1: healthy or degraded; 0: unhealthy, taken out of allocatable; absent while unknown", "the verdict"},
    {"efa_health_info", info, "state, reason", Held::yes, "The verdict on an interface; reason is empty when healthy",
     "the verdict"},
});

// The name ends in the name of the counter's file.
constexpr Metric efa_counter(std::string_view name, std::string_view help) {
  return {name, counter, "", Held::yes, help, ""};
}

constexpr std::array kEfaCounters = {
    Metric{"node_amazonefa_info", info, "", Held::yes, "An interface with counters", ""},
    efa_counter("node_amazonefa_tx_bytes", "Bytes sent"),
    efa_counter("node_amazonefa_tx_pkts", "Packets sent"),
    efa_counter("node_amazonefa_rx_bytes", "Bytes received"),
    efa_counter("node_amazonefa_rx_pkts", "Packets received"),
    efa_counter("node_amazonefa_rx_drops", "Packets dropped on receipt"),
    efa_counter("node_amazonefa_send_bytes", "Bytes of send work requests"),
    efa_counter("node_amazonefa_send_wrs", "Send work requests"),
    efa_counter("node_amazonefa_recv_bytes", "Bytes of receive work requests"),
    efa_counter("node_amazonefa_recv_wrs", "Receive work requests"),
    efa_counter("node_amazonefa_rdma_read_wrs", "RDMA read work requests"),
    efa_counter("node_amazonefa_rdma_read_bytes", "Bytes read by RDMA"),
    efa_counter("node_amazonefa_rdma_read_wr_err", "RDMA read work requests that failed"),
    efa_counter("node_amazonefa_rdma_read_resp_bytes", "Bytes sent in answer to RDMA reads"),
    efa_counter("node_amazonefa_rdma_write_wrs", "RDMA write work requests; EFA driver from 2.5"),
    efa_counter("node_amazonefa_rdma_write_bytes", "Bytes written by RDMA; EFA driver from 2.5"),
    efa_counter("node_amazonefa_rdma_write_wr_err", "RDMA write work requests that failed; EFA driver from 2.5"),
    efa_counter("node_amazonefa_rdma_write_recv_bytes", "Bytes that others wrote by RDMA; EFA driver from 2.5"),
    efa_counter("node_amazonefa_retrans_bytes", "Bytes retransmitted; EFA driver from 2.17, Nitro v4 or later"),
    efa_counter("node_amazonefa_retrans_pkts", "Packets retransmitted; EFA driver from 2.17, Nitro v4 or later"),
    efa_counter("node_amazonefa_retrans_timeout_events",
                "Timeouts that caused retransmission; EFA driver from 2.17, Nitro v4 or later"),
    efa_counter("node_amazonefa_unresponsive_remote_events",
                "Remote ends that stopped answering; EFA driver from 2.17, Nitro v4 or later"),
    efa_counter("node_amazonefa_impaired_remote_conn_events",
                "Connections that became impaired; EFA driver from 2.17, Nitro v4 or later"),
    efa_counter("node_amazonefa_submitted_cmds", "Commands that the driver submitted to the interface"),
    efa_counter("node_amazonefa_completed_cmds", "Commands that the interface answered"),
    efa_counter("node_amazonefa_cmds_err", "Commands that failed"),
    efa_counter("node_amazonefa_no_completion_cmds", "Commands that were never answered"),
    efa_counter("node_amazonefa_keep_alive_rcvd", "Keep-alive messages from the interface"),
    efa_counter("node_amazonefa_alloc_pd_err", "Protection domain allocations that failed"),
    efa_counter("node_amazonefa_create_qp_err", "Queue pair creations that failed"),
    efa_counter("node_amazonefa_create_cq_err", "Completion queue creations that failed"),
    efa_counter("node_amazonefa_reg_mr_err", "Memory region registrations that failed"),
    efa_counter("node_amazonefa_alloc_mr_err", "Memory region allocations that failed"),
    efa_counter("node_amazonefa_get_dma_mr_err", "DMA memory region requests that failed"),
    efa_counter("node_amazonefa_alloc_ucontext_err", "User context allocations that failed"),
    efa_counter("node_amazonefa_create_ah_err", "Address handle creations that failed"),
    efa_counter("node_amazonefa_mmap_err", "Mappings that failed"),
};

constexpr auto kKernelLog = std::to_array<Metric>({
    {"neuron_kernel_log_reading", gauge, "", Held::no, "1: the kernel log is read; 0: it cannot be read", ""},
    {"neuron_kernel_log_lost_records_total", counter, "", Held::no,
     "Records that the kernel overwrote before they were read", ""},
    {"neuron_kernel_log_ignored_lines_total", counter, "", Held::no,
     "Hardware error lines that are malformed or name an unknown device, core or serial number", ""},
    {"neuron_kernel_log_errors_total", counter, "neuron_device_index, physical_core, kind", Held::yes,
     "Hardware error lines: kind is sram, core, hbm, hbm_repairable, dma, collectives or other; device and core are "
     "empty where the lines name none",
     ""},
    {"neuron_kernel_log_healthy", gauge, "", Held::no,
     "Verdict on lines that name no device: 1 healthy or degraded, 0 unhealthy; absent while unknown", ""},
    {"neuron_kernel_log_health_info", info, "state, reason", Held::no, "The verdict on lines that name no device", ""},
});

constexpr auto kAgent = std::to_array<Metric>({
    {"neuron_agent_build_info", info, "version", Held::no, "The agent's version", ""},
    {"neuron_agent_start_time_seconds", gauge, "", Held::no, "When the process started, in Unix time", ""},
    {"neuron_agent_scans_total", counter, "", Held::no, "Scans of the machine", ""},
    {"neuron_agent_last_scan_seconds", gauge, "", Held::no, "How long the newest scan took", ""},
    {"neuron_agent_scan_unanswered", gauge, "", Held::no, "Parts of the machine whose read hangs", ""},
    {"neuron_agent_scan_problems", gauge, "", Held::no,
     "Unreadable files of the host (32 at most) and of each device and interface (8 at most)", ""},
    {"neuron_agent_usage_age_seconds", gauge, "", Held::no,
     "Age of the newest sample of counters, or of the first scrape if there is none yet; beyond 90 s values from "
     "samples are absent",
     ""},
    {"neuron_agent_units", gauge, "resource", Held::no, "Units listed to the kubelet", ""},
    {"neuron_agent_units_healthy", gauge, "resource", Held::no, "Units listed as healthy", ""},
    {"neuron_agent_units_held", gauge, "resource", Held::no,
     "Units that containers hold through this resource; some of them may be unhealthy", ""},
    {"neuron_agent_units_free", gauge, "resource", Held::no, "Units listed as healthy that no container holds", ""},
    {"neuron_agent_largest_request_units", gauge, "resource", Held::no,
     "Largest request that could still be met with connected units; below half of the free units the node is "
     "fragmented",
     ""},
    {"neuron_agent_registered", gauge, "resource", Held::no, "1: registered with the kubelet; 0: not", ""},
    {"neuron_agent_registrations_total", counter, "resource", Held::no, "Registrations with the kubelet", ""},
    {"neuron_agent_allocations_total", counter, "resource", Held::no, "Containers that were allocated units", ""},
    {"neuron_agent_refusals_total", counter, "reason", Held::no, "Refused calls by reason", ""},
    {"neuron_agent_call_seconds", histogram, "method", Held::no, "How long the kubelet's calls took", ""},
    {"neuron_agent_calls_failed_total", counter, "method", Held::no, "Calls of the kubelet that failed", ""},
    {"neuron_agent_api_calls_total", counter, "outcome", Held::no, "Calls to the API server", ""},
});

}  // namespace

std::string_view to_string(MetricType type) {
  switch (type) {
    case MetricType::counter:
      return "counter";
    case MetricType::gauge:
      return "gauge";
    case MetricType::info:
      return "info";
    case MetricType::histogram:
      return "histogram";
  }
  return "gauge";
}

std::span<const MetricGroup> metric_groups() {
  static const std::array kGroups = {
      MetricGroup{"Names of neuron-monitor", kInstanceLabels,
                  "Files are below `sys/class/neuron_device/neuron<N>/`, unless they begin with `proc`.",
                  kNeuronMonitor},
      MetricGroup{"Devices", "neuron_device_index", "Files are below `sys/class/neuron_device/neuron<N>/`.", kDevices},
      MetricGroup{
          "Cores", "neuroncore, neuron_device_index",
          "Files are below `sys/class/neuron_device/neuron<N>/neuron_core<M>/` of each physical core behind the "
          "logical one.",
          kCores},
      MetricGroup{"EFA interfaces", "device, bdf", "Files are below `sys/bus/pci/devices/<bdf>/`.", kEfas},
      MetricGroup{
          "EFA counters", "device, port",
          "Names of the EFA node exporter. Files are in `sys/class/infiniband/<device>/ports/1/hw_counters/`, from "
          "`submitted_cmds` on in `hw_counters/` beside `ports/`; before EFA driver 1.14 all are in one of the two.",
          kEfaCounters},
      MetricGroup{"Kernel log", "",
                  "Of lines `NEURON_HW_ERR=` in `dev/kmsg` since the driver was loaded, if the agent reads it "
                  "(`--kernel-log on`).",
                  kKernelLog},
      MetricGroup{"The agent", "", "Reasons of refusals: [above](#refusals).", kAgent},
  };
  return kGroups;
}

std::span<const Metric> metrics_of(Subject subject) {
  return metric_groups()[static_cast<std::size_t>(subject)].metrics;
}

}  // namespace neuron::metrics
