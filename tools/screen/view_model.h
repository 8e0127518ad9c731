#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/hardware.h"
#include "agent/core/usage_rates.h"
#include "agent/model/allocation.h"
#include "agent/model/health.h"
#include "agent/model/host_scan.h"
#include "agent/model/usage.h"

// The values that every view of neuron-top shows, put together once per sample: the screen, the printed text and JSON
// are drawn from them, so that they cannot disagree. Passive data; an empty optional is shown as "n/a".
namespace neuron::screen {

// Everything that was read of a machine up to one moment. Passive, comparable.
struct Moment {
  model::HostScan scan;                 // assessed (agent/health/assess.h)
  model::UsageSample sample;            // the newest
  core::UsageRates rates;               // since the sample before
  std::vector<model::Allocation> pods;  // empty also without --pods
  std::string no_pods;  // why the kubelet's answer is missing; "not asked for" without --pods; "" = not missing
  std::string claim_driver{core::kDefaultDriverName};  // whose claims are shown
};

// One logical core.
struct CoreView {
  int id = 0;        // global
  int position = 0;  // on its device, from 0
  std::optional<double> percent;
  std::optional<double> flops_per_second;
  std::optional<std::uint64_t> device_bytes;
  std::optional<std::uint64_t> host_bytes;
  model::DeviceMemory kinds;
};

struct EccView {
  std::optional<std::uint64_t> sram_corrected;
  std::optional<std::uint64_t> sram_uncorrected;
  std::optional<std::uint64_t> memory_corrected;
  std::optional<std::uint64_t> memory_uncorrected;
  std::optional<std::uint64_t> memory_repairable;
};

struct DeviceView {
  int index = 0;
  std::vector<CoreView> cores;    // ascending position
  std::optional<double> percent;  // mean of the cores that are known
  std::optional<std::uint64_t>
      device_bytes;                         // sum of the cores; nullopt as soon as one is unknown, or above memory_size
  std::optional<std::uint64_t> host_bytes;  // sum of the kinds when all are known, else of the cores
  std::optional<std::uint64_t> memory_size;  // of the whole device
  model::HostMemory host_kinds;
  std::optional<model::PowerUsage> power;
  model::Health health;
  EccView ecc;
  std::vector<int> pids;              // ascending
  std::vector<std::string> problems;  // unreadable files that should be readable: "path: reason"
};

struct EfaView {
  std::string name;  // RDMA name, or the PCI address where no driver is bound
  model::Health health;
  std::optional<double> rx, tx, rdma_read, rdma_write;  // bytes per second
  std::optional<double> retransmits;                    // packets per second
  std::optional<double> errors;                         // per second
  std::optional<std::uint64_t> errors_total;            // since the driver was loaded
  std::optional<int> numa_node;
  std::vector<std::string> problems;  // as of a device
};

struct ProcessView {
  int pid = 0;
  std::string label;    // NEURON_PROCESS_TAG, else the pid
  std::string command;  // "" unknown
  std::vector<int> devices;
  std::vector<int> cores;  // global logical ids
  bool cores_known = true;
  std::optional<std::uint64_t> device_bytes;  // as the driver accounts them; nullopt: not read
  std::optional<std::uint64_t> host_bytes;
  std::optional<double> user_percent, system_percent;  // of all vCPUs
  std::optional<std::uint64_t> resident_bytes;
};

// One container that holds devices through device plugins, or by one claim.
struct PodView {
  std::string name;  // "namespace/pod"
  std::string container;
  std::vector<int> devices;
  std::vector<int> cores;  // global logical ids
  std::vector<std::string> efas;
  std::string claim_namespace, claim;  // both "" = through device plugins
};

struct ViewModel {
  std::string version;  // of this program
  std::string instance_id, instance_type, driver_version;
  std::string core_version;         // "v2", "v3", "v3d"; "" unknown
  int lnc = 0;                      // 0 unknown
  std::vector<DeviceView> devices;  // ascending index
  std::vector<EfaView> efas;
  std::vector<ProcessView> processes;  // ascending pid
  std::vector<PodView> pods;           // by name, container, claim
  std::optional<double> mean_percent;
  std::optional<core::CpuRates> cpu;
  std::optional<core::ProcessRates> runtime_cpu;  // of all processes
  int cpu_count = 0;
  std::optional<model::HostMemoryUsage> memory;
  double seconds = 0;          // between the two samples; 0 = rates are not known yet
  std::string no_rates;        // why rates are unknown; "" = known, or too early
  std::string no_utilization;  // why the cores' utilization is unknown; "" = known
  std::string no_processes;
  std::string no_pods;
  std::string no_devices;             // why the list is empty; "" = it is not
  std::vector<std::string> problems;  // of the machine, then of all devices and interfaces
  int expected_devices = 0;           // that the instance type has; 0 = unknown
};

[[nodiscard]] ViewModel make_view_model(const Moment& moment);

// The pods that hold a device, the cores of a process, or an interface: "team/train-0", several joined by ",".
[[nodiscard]] std::string pods_of_device(const ViewModel& model, const DeviceView& device);
[[nodiscard]] std::string pods_of_process(const ViewModel& model, const ProcessView& process);
[[nodiscard]] std::string pods_of_efa(const ViewModel& model, const std::string& name);

inline constexpr const char* kReportSchema = "neuron-top/1";

// One line of JSON, ended by a line feed: the groups of neuron-monitor's report where it has them (its names, units and
// places), and under "neuron_top" the values that it lacks, with their version in "schema". An unknown value is null
// under "neuron_top" and left out in neuron-monitor's groups, whose "error" then gives the reason. `time_ms`: wall
// clock, milliseconds since 1970. Pure.
[[nodiscard]] std::string report_line(const ViewModel& model, std::int64_t time_ms);

}  // namespace neuron::screen
