#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Activity of a node at one moment: the raw counters that neuron-top turns into rates. Plain values, no I/O. As in
// device.h an empty optional means unknown (absent, unreadable, too slow), never zero. The texts called no_... say in a
// few words why values are unknown.
namespace neuron::model {

// Kinds of host memory, neuron<N>/stats/memory_usage/host_mem/<kind>/total, bytes in use now, in the driver's order.
enum class HostMemoryKind {
  dma_buffers,
  tensors,
  constants,
  application_memory,
  driver_memory,
  notifications,
  dma_rings,
  uncategorized
};
inline constexpr std::size_t kHostMemoryKinds = 8;

// Kinds of device memory, neuron_core<M>/stats/memory_usage/device_mem/<kind>/total, bytes in use now.
enum class DeviceMemoryKind {
  model_code,
  tensors,
  constants,
  model_shared_scratchpad,
  runtime_memory,
  driver_memory,
  collectives,
  nonshared_scratchpad,
  notifications,
  dma_rings,
  uncategorized
};
inline constexpr std::size_t kDeviceMemoryKinds = 11;

// Ends of executions on a core, neuron_core<M>/stats/status/<status>/total, counted since the driver was loaded:
// those of the driver's 24 that Prometheus names exist for (docs/metrics.md), but for what model::CoreSignals has.
enum class ExecutionStatus {
  success,
  timeout,
  exec_bad_input,
  execute_completed_with_error,
  execute_completed_with_num_error,
  execute_failed_to_queue,
  generic_error,
  hw_collectives_error
};
inline constexpr std::size_t kExecutionStatuses = 8;

[[nodiscard]] std::string_view to_string(HostMemoryKind kind);     // the folder's name
[[nodiscard]] std::string_view to_string(DeviceMemoryKind kind);   // the folder's name
[[nodiscard]] std::string_view to_string(ExecutionStatus status);  // the folder's name

using HostMemory = std::array<std::optional<std::uint64_t>, kHostMemoryKinds>;         // by HostMemoryKind
using DeviceMemory = std::array<std::optional<std::uint64_t>, kDeviceMemoryKinds>;     // by DeviceMemoryKind
using ExecutionCounts = std::array<std::optional<std::uint64_t>, kExecutionStatuses>;  // by ExecutionStatus

// One physical core, neuron<N>/neuron_core<M>/. Counters are cumulative since driver load and may go backwards (cleared
// by root): then the reader of two samples says unknown. Where they are not live (UsageSample::no_utilization) they
// stay empty, so that a counter that stands still is not taken for an idle core.
struct CoreUsage {
  int physical_index = 0;                            // M
  std::optional<std::uint64_t> busy_us;              // stats/other_info/nc_time_in_use/total, live from 2.30.2 only
  std::optional<std::uint64_t> flops;                // stats/other_info/flop_count/total, as above; when asked for
  std::optional<std::uint64_t> inferences;           // stats/other_info/inference_count/total, as above; when asked for
  std::optional<std::uint64_t> device_memory_bytes;  // stats/memory_usage/device_mem/total
  std::optional<std::uint64_t> host_memory_bytes;    // stats/memory_usage/host_mem/total
  DeviceMemory device_memory;                        // filled only when asked for (UsageRequest)
  ExecutionCounts executions;                        // likewise; live from 2.30.2 only
  friend bool operator==(const CoreUsage&, const CoreUsage&) = default;
};

// stats/power/utilization: per cent of the maximum, rolled up by the driver once per minute.
struct PowerUsage {
  double min_percent = 0;
  double max_percent = 0;
  double average_percent = 0;
  friend bool operator==(const PowerUsage&, const PowerUsage&) = default;
};

struct DeviceUsage {
  int index = 0;                    // N
  std::optional<PowerUsage> power;  // nullopt: no file (driver < 2.21.37), no data yet, or not valid
  HostMemory host_memory;           // filled only when asked for
  std::vector<CoreUsage> cores;     // by physical index, ascending
  friend bool operator==(const DeviceUsage&, const DeviceUsage&) = default;
};

// sys/class/infiniband/<name>/ports/1/hw_counters and hw_counters: file name to value, sorted; only numbers ("lifespan"
// is no counter); of a name in both, the port's. Empty: the driver shows none, or none can be read.
struct EfaUsage {
  std::string name;
  std::map<std::string, std::uint64_t> counters;
  friend bool operator==(const EfaUsage&, const EfaUsage&) = default;
};

// proc/stat, first line, in clock ticks since boot.
struct CpuTicks {
  std::uint64_t user = 0;    // user + nice
  std::uint64_t system = 0;  // system + irq + softirq
  std::uint64_t idle = 0;    // idle + iowait
  std::uint64_t steal = 0;
  friend bool operator==(const CpuTicks&, const CpuTicks&) = default;
};

// proc/meminfo, bytes. available: MemAvailable; unknown where the file lacks it.
struct HostMemoryUsage {
  std::uint64_t total_bytes = 0;
  std::uint64_t available_bytes = 0;
  std::optional<std::uint64_t> swap_total_bytes;
  std::optional<std::uint64_t> swap_free_bytes;
  friend bool operator==(const HostMemoryUsage&, const HostMemoryUsage&) = default;
};

// One process that uses a Neuron device: by the driver's list (HostScan) and proc/<pid>.
struct ProcessUsage {
  int pid = 0;                     // in the pid namespace of the root's proc
  std::string command;             // proc/<pid>/cmdline, blanks for NULs, printable, at most 255 bytes; "" = unknown
  std::optional<std::string> tag;  // NEURON_PROCESS_TAG of proc/<pid>/environ, printable, at most 255 bytes
  std::optional<std::uint64_t> user_ticks;      // proc/<pid>/stat field 14
  std::optional<std::uint64_t> system_ticks;    // proc/<pid>/stat field 15
  std::optional<std::uint64_t> resident_bytes;  // proc/<pid>/statm field 2 times the page size
  std::optional<std::uint64_t> start_ticks;     // proc/<pid>/stat field 22, since boot: another one, another process
  friend bool operator==(const ProcessUsage&, const ProcessUsage&) = default;
};

// Everything of one moment.
struct UsageSample {
  std::chrono::steady_clock::time_point at;  // when reading began
  std::vector<DeviceUsage> devices;          // ascending index
  std::vector<EfaUsage> efas;                // in the order of HostScan::efas, those with a name
  std::optional<CpuTicks> cpu;
  int cpu_count = 0;  // lines cpu<N> of proc/stat; 0 = unknown
  std::optional<HostMemoryUsage> memory;
  std::vector<ProcessUsage> processes;  // ascending pid
  std::string no_utilization;  // why busy_us is not live: "driver 2.27.4 counts only when a process ends"; "" = live
  std::string no_processes;    // why the processes are unknown: "no recorded driver answers in …"; "" = known
};

// Values that a view shows; nothing else is read (a trn2.48xlarge has 16,000 files).
struct UsageRequest {
  bool power = true;
  bool efa = true;                   // bytes, packets, retransmissions and what core::efa_error_counters names
  bool efa_every_counter = false;    // all that the interface has
  bool flops = false;                // flops and inferences
  bool executions = false;           // how executions ended: eight files per core
  bool memory_kinds_of_all = false;  // host and device memory kinds of every device (the summary needs them)
  std::vector<int> memory_kinds_of;  // else of these devices
};

}  // namespace neuron::model
