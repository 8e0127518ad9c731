#include <array>

#include "agent/metrics/metric_table.h"

// What is shown of Neuron devices and cores, and of the machine they are in.
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
     "`neuron_core<M>/stats/status/*/total`, driver from 2.30.2 ([below](#executions))"},
    {"execution_errors_total", counter, "error_type, runtime_tag, neuroncore", Held::yes,
     "Executions on a core that failed, by kind of error",
     "`neuron_core<M>/stats/status/*/total`, driver from 2.30.2 ([below](#executions))"},
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
     "1: healthy or degraded; 0: unhealthy, taken out of allocatable; absent while unknown",
     "the verdict of the health policy"},
    {"neuron_device_health_info", info, "state, reason", Held::yes,
     "The verdict on a device; reason is empty when healthy", "the verdict of the health policy"},
    {"neuron_device_ecc_events_total", counter, "event_type", Held::yes,
     "ECC events of a device of every kind that its driver counts, by file name",
     "`stats/hardware/*_ecc_*`, `stats/hardware/health_status/*_ecc_err_count`"},
    {"neuron_device_hw_error_events_total", counter, "", Held::yes, "Hardware error events reported by the firmware",
     "`stats/hardware/health_status/hw_error_event`, driver from 2.28"},
    {"neuron_device_unhealthy_components", gauge, "", Held::yes,
     "Components of a device that the driver reports as unhealthy",
     "`stats/hardware/health_status/unhealthy_components`, driver from 2.30.2"},
    {"neuron_device_memory_bytes", gauge, "", Held::yes, "Memory of a device", "the tables of the chips"},
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
     "1: healthy or degraded; 0: unhealthy, taken out of allocatable; absent while unknown",
     "the verdict of the health policy"},
    {"neuron_core_health_info", info, "state, reason", Held::yes,
     "The verdict on a core, the worst of its physical ones", "the verdict of the health policy"},
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

}  // namespace

std::span<const Metric> neuron_monitor_metrics() {
  return kNeuronMonitor;
}

std::span<const Metric> device_metrics() {
  return kDevices;
}

std::span<const Metric> core_metrics() {
  return kCores;
}

}  // namespace neuron::metrics
