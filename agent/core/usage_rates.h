#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/host_scan.h"
#include "agent/model/usage.h"

// Rates from two samples of counters. Pure functions; any thread.
namespace neuron::core {

// One logical core: the one or two physical cores of its position. Rates are over UsageRates::seconds. A value is
// unknown when that of one physical core is.
struct CoreRates {
  int id = 0;                 // global logical index (logical_cores.h)
  int device = 0;             // index of its device
  int position = 0;           // among the logical cores of its device, from 0
  std::vector<int> physical;  // neuron_core<M> of each, in the driver's order
  // Mean of the physical cores, 0 to 100. A core that was busy longer than the time between the samples counts as 100
  // while the excess is at most kReadingSlack, the effect of the time of reading; a larger one means that counter and
  // clock disagree, hence unknown.
  std::optional<double> utilization_percent;
  std::optional<double> flops_per_second;       // sum of the physical cores
  std::optional<double> inferences_per_second;  // sum
  // In use at the second sample: sums of the physical cores, no rates.
  std::optional<std::uint64_t> device_memory_bytes;
  std::optional<std::uint64_t> host_memory_bytes;
  model::DeviceMemory device_memory;  // by kind, where the sample has them
  friend bool operator==(const CoreRates&, const CoreRates&) = default;
};

// Seconds that a core may seem busy beyond the time between two samples, at least; or kReadingSlackShare of that time.
inline constexpr double kReadingSlack = 0.02;
inline constexpr double kReadingSlackShare = 0.02;

// One EFA interface. Counters that are new, gone or went backwards have no rate.
struct EfaRates {
  std::string name;
  std::map<std::string, double> per_second;    // counter's file name to growth per second
  std::optional<double> rx_bytes_per_second;   // rx_bytes
  std::optional<double> tx_bytes_per_second;   // tx_bytes
  std::optional<double> errors_per_second;     // sum over the present efa_error_counters()
  std::optional<double> retrans_per_second;    // retrans_pkts; nullopt before EFA driver 2.17 or Nitro v4
  std::map<std::string, std::uint64_t> error;  // growth of the error counters that grew
  friend bool operator==(const EfaRates&, const EfaRates&) = default;
};

// Per cent of all vCPUs together, 0 to 100.
struct CpuRates {
  double user_percent = 0;
  double system_percent = 0;
  double steal_percent = 0;
  friend bool operator==(const CpuRates&, const CpuRates&) = default;
};

// Per cent of all vCPUs together, as neuron-top shows its runtime usage; nullopt without proc/stat, for a new process,
// and when another process has the same number.
struct ProcessRates {
  int pid = 0;
  std::optional<double> user_percent;
  std::optional<double> system_percent;
  friend bool operator==(const ProcessRates&, const ProcessRates&) = default;
};

struct UsageRates {
  double seconds = 0;                      // between the samples; 0 = no rates at all
  bool stands_still = false;               // the machine's clock ticks did not move: a capture; no rates either
  std::vector<CoreRates> cores;            // ascending id; none of a device whose core count or LNC is unknown
  std::optional<double> mean_utilization;  // per cent, over the cores with a known one; nullopt for none
  std::vector<EfaRates> efas;              // in the order of the second sample
  std::optional<CpuRates> cpu;
  std::vector<ProcessRates> processes;        // of the second sample
  std::optional<ProcessRates> all_processes;  // pid 0: sums of the known ones; nullopt for none
  friend bool operator==(const UsageRates&, const UsageRates&) = default;
};

// Rates from `before` to `now`. `scan` (completed, see complete.h) has the logical cores; devices it lacks are left
// out. For the first sample pass it twice: all rates are unknown, while memory is present. The same holds when `now` is
// not later than `before`, and when proc/stat has not counted a tick: a capture must not look like an idle machine.
[[nodiscard]] UsageRates usage_rates(const model::UsageSample& before, const model::UsageSample& now,
                                     const model::HostScan& scan);

// EFA counters whose growth means an error (docs/reference/efa.md#counters), sorted. Static lifetime.
[[nodiscard]] std::span<const std::string_view> efa_error_counters();

}  // namespace neuron::core
