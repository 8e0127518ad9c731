#include "agent/core/usage_rates.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "agent/core/catalogue.h"
#include "agent/core/complete.h"
#include "agent/core/logical_cores.h"

namespace neuron::core {
namespace {

using model::CoreUsage;
using model::DeviceUsage;
using model::UsageSample;
using Counter = std::optional<std::uint64_t>;

constexpr std::array<std::string_view, 11> kErrorCounters = {"cmds_err",
                                                             "create_ah_err",
                                                             "create_cq_err",
                                                             "create_qp_err",
                                                             "impaired_remote_conn_events",
                                                             "no_completion_cmds",
                                                             "rdma_read_wr_err",
                                                             "rdma_write_wr_err",
                                                             "retrans_timeout_events",
                                                             "rx_drops",
                                                             "unresponsive_remote_events"};

// Growth of a counter; nullopt where one value is unknown or it went backwards.
Counter growth(const Counter& before, const Counter& now) {
  if (!before || !now || *now < *before) return std::nullopt;
  return *now - *before;
}

std::optional<double> per_second(const Counter& before, const Counter& now, double seconds) {
  const Counter grown = growth(before, now);
  if (!grown || seconds <= 0) return std::nullopt;
  return static_cast<double>(*grown) / seconds;
}

std::optional<double> busy_percent(const CoreUsage& before, const CoreUsage& now, double seconds) {
  constexpr double kMicroseconds = 1e-6;
  const Counter grown = growth(before.busy_us, now.busy_us);
  if (!grown || seconds <= 0) return std::nullopt;
  const double busy = static_cast<double>(*grown) * kMicroseconds;
  if (busy > seconds + std::max(kReadingSlack, seconds * kReadingSlackShare)) return std::nullopt;
  return std::min(busy / seconds, 1.0) * 100;
}

// Adds to a sum that becomes unknown when one part is.
void add(std::optional<double>& sum, const std::optional<double>& part) {
  if (sum && part)
    *sum += *part;
  else
    sum.reset();
}

// The core's counters; all unknown where the sample lacks it.
CoreUsage core_of(const DeviceUsage* device, int physical_index) {
  if (device != nullptr) {
    for (const CoreUsage& core : device->cores) {
      if (core.physical_index == physical_index) return core;
    }
  }
  return {};
}

CoreRates rates_of_core(const DeviceUsage* before, const DeviceUsage* now, CoreRates rates, double seconds) {
  rates.utilization_percent = rates.flops_per_second = rates.inferences_per_second = 0.0;
  rates.device_memory_bytes = rates.host_memory_bytes = 0;
  rates.device_memory.fill(0);
  for (const int physical : rates.physical) {
    const CoreUsage first = core_of(before, physical);
    const CoreUsage last = core_of(now, physical);
    add(rates.utilization_percent, busy_percent(first, last, seconds));
    add(rates.flops_per_second, per_second(first.flops, last.flops, seconds));
    add(rates.inferences_per_second, per_second(first.inferences, last.inferences, seconds));
    add_bytes(rates.device_memory_bytes, last.device_memory_bytes);
    add_bytes(rates.host_memory_bytes, last.host_memory_bytes);
    for (std::size_t i = 0; i < rates.device_memory.size(); ++i)
      add_bytes(rates.device_memory[i], last.device_memory[i]);
  }
  if (rates.utilization_percent) *rates.utilization_percent /= static_cast<double>(rates.physical.size());
  return rates;
}

std::vector<CoreRates> rates_of_cores(const UsageSample& before, const UsageSample& now, const model::HostScan& scan,
                                      double seconds) {
  std::vector<CoreRates> cores;
  for (const model::NeuronDevice& device : scan.devices) {
    const std::vector<int> ids = core_ids_of(device, scan);
    if (ids.empty()) continue;
    const DeviceUsage* first = model::find_device(before.devices, device.index);
    const DeviceUsage* last = model::find_device(now.devices, device.index);
    for (std::size_t position = 0; position < ids.size(); ++position) {
      CoreRates core;
      core.id = ids[position];
      core.device = device.index;
      core.position = static_cast<int>(position);
      core.physical = physical_cores_of(device, scan, core.position);
      if (!core.physical.empty()) core = rates_of_core(first, last, std::move(core), seconds);
      cores.push_back(std::move(core));
    }
  }
  return cores;
}

std::optional<double> mean_of(const std::vector<CoreRates>& cores) {
  double sum = 0;
  int known = 0;
  for (const CoreRates& core : cores) {
    if (!core.utilization_percent) continue;
    sum += *core.utilization_percent;
    ++known;
  }
  return known > 0 ? std::optional(sum / known) : std::nullopt;
}

Counter value_of(const model::EfaUsage& efa, const std::string& counter) {
  const auto found = efa.counters.find(counter);
  return found == efa.counters.end() ? Counter() : Counter(found->second);
}

EfaRates rates_of_efa(const model::EfaUsage& before, const model::EfaUsage& now, double seconds) {
  EfaRates rates;
  rates.name = now.name;
  for (const auto& [counter, value] : now.counters) {
    const Counter first = value_of(before, counter);
    const auto rate = per_second(first, value, seconds);
    if (!rate) continue;
    rates.per_second.emplace(counter, *rate);
    if (std::find(kErrorCounters.begin(), kErrorCounters.end(), counter) == kErrorCounters.end()) continue;
    rates.errors_per_second = rates.errors_per_second.value_or(0) + *rate;
    if (value > *first) rates.error.emplace(counter, value - *first);
  }
  const auto rate_of = [&](const char* counter) {
    return per_second(value_of(before, counter), value_of(now, counter), seconds);
  };
  rates.rx_bytes_per_second = rate_of("rx_bytes");
  rates.tx_bytes_per_second = rate_of("tx_bytes");
  rates.retrans_per_second = rate_of("retrans_pkts");
  return rates;
}

std::vector<EfaRates> rates_of_efas(const UsageSample& before, const UsageSample& now, double seconds) {
  std::vector<EfaRates> efas;
  for (const model::EfaUsage& efa : now.efas) {
    const auto first = std::find_if(before.efas.begin(), before.efas.end(),
                                    [&](const model::EfaUsage& other) { return other.name == efa.name; });
    efas.push_back(rates_of_efa(first == before.efas.end() ? model::EfaUsage{} : *first, efa, seconds));
  }
  return efas;
}

// Ticks of all vCPUs between the samples, split as in proc/stat; nullopt when their sum is zero.
struct TicksPassed {
  double user = 0;
  double system = 0;
  double steal = 0;
  double all = 0;
};

std::optional<TicksPassed> ticks_passed(const UsageSample& before, const UsageSample& now) {
  if (!before.cpu || !now.cpu) return std::nullopt;
  const Counter user = growth(before.cpu->user, now.cpu->user);
  const Counter system = growth(before.cpu->system, now.cpu->system);
  const Counter steal = growth(before.cpu->steal, now.cpu->steal);
  // Idle time may step back by a tick or two (kernel, Documentation/filesystems/proc.rst: iowait can decrease).
  const std::uint64_t idle = growth(before.cpu->idle, now.cpu->idle).value_or(0);
  if (!user || !system || !steal) return std::nullopt;
  TicksPassed passed{static_cast<double>(*user), static_cast<double>(*system), static_cast<double>(*steal), 0};
  passed.all = passed.user + passed.system + passed.steal + static_cast<double>(idle);
  return passed.all > 0 ? std::optional(passed) : std::nullopt;
}

// Several times the slowest clock tick (100 Hz) of one idle CPU.
constexpr double kSureToTick = 0.15;

// A running machine counts ticks, also idle ones; a capture does not.
bool same_ticks(const UsageSample& before, const UsageSample& now) {
  return before.cpu && now.cpu && *before.cpu == *now.cpu;
}

std::vector<ProcessRates> rates_of_processes(const UsageSample& before, const UsageSample& now,
                                             const std::optional<TicksPassed>& passed) {
  std::vector<ProcessRates> processes;
  for (const model::ProcessUsage& process : now.processes) {
    ProcessRates rates;
    rates.pid = process.pid;
    const auto first = std::find_if(before.processes.begin(), before.processes.end(),
                                    [&](const model::ProcessUsage& other) { return other.pid == process.pid; });
    if (passed && first != before.processes.end() && first->start_ticks == process.start_ticks) {
      const Counter user = growth(first->user_ticks, process.user_ticks);
      const Counter system = growth(first->system_ticks, process.system_ticks);
      if (user && system) {
        rates.user_percent = std::min(100.0, 100 * static_cast<double>(*user) / passed->all);
        rates.system_percent = std::min(100.0, 100 * static_cast<double>(*system) / passed->all);
      }
    }
    processes.push_back(rates);
  }
  return processes;
}

std::optional<ProcessRates> sum_of(const std::vector<ProcessRates>& processes) {
  std::optional<ProcessRates> sum;
  for (const ProcessRates& process : processes) {
    if (!process.user_percent || !process.system_percent) continue;
    if (!sum) sum = ProcessRates{0, 0.0, 0.0};
    *sum->user_percent += *process.user_percent;
    *sum->system_percent += *process.system_percent;
  }
  return sum;
}

}  // namespace

UsageRates usage_rates(const UsageSample& before, const UsageSample& now, const model::HostScan& scan) {
  UsageRates rates;
  rates.seconds = std::max(0.0, std::chrono::duration<double>(now.at - before.at).count());
  if (same_ticks(before, now)) {
    rates.stands_still = rates.seconds >= kSureToTick;
    if (!rates.stands_still) rates.seconds = 0;
  }
  const double seconds = rates.stands_still ? 0 : rates.seconds;
  rates.cores = rates_of_cores(before, now, scan, seconds);
  rates.mean_utilization = mean_of(rates.cores);
  rates.efas = rates_of_efas(before, now, seconds);
  const auto passed = seconds > 0 ? ticks_passed(before, now) : std::nullopt;
  if (passed) {
    rates.cpu = CpuRates{100 * passed->user / passed->all, 100 * passed->system / passed->all,
                         100 * passed->steal / passed->all};
  }
  rates.processes = rates_of_processes(before, now, passed);
  rates.all_processes = sum_of(rates.processes);
  return rates;
}

std::span<const std::string_view> efa_error_counters() {
  return kErrorCounters;
}

}  // namespace neuron::core
