#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "agent/model/usage.h"

// Measurements of a node's agent, from the text of its /metrics: utilization, memory, power, traffic. Pure.
namespace neuron::fleet {

struct CoreUse {
  std::optional<double> percent;  // busy, between the agent's two newest samples
  std::optional<std::uint64_t> device_bytes;
  std::optional<std::uint64_t> host_bytes;
  std::optional<double> flops;             // since the driver was loaded
  std::optional<double> flops_per_second;  // see add_rates()
  model::DeviceMemory kinds;               // those that neuron-monitor has names for
};

struct DeviceUse {
  std::optional<model::PowerUsage> power;
  model::HostMemory host_memory;
  std::map<std::string, std::uint64_t> ecc;  // by event type: "mem_ecc_corrected"
};

struct EfaUse {
  std::map<std::string, double> counters;    // by the driver's file name: "rx_bytes"
  std::map<std::string, double> per_second;  // see add_rates()
};

struct NodeUsage {
  std::map<int, CoreUse> cores;        // by logical core
  std::map<int, DeviceUse> devices;    // by index
  std::map<std::string, EfaUse> efas;  // by RDMA name
  std::optional<double> sample_age;    // seconds: how old the agent's newest sample was
  double read_at = 0;                  // seconds of any steady clock, when the text came; set by the caller
  bool has_rates = false;
  int cpu_count = 0;
  std::optional<double> cpu_user_percent, cpu_system_percent;
  std::optional<std::uint64_t> memory_total, memory_used;  // of the machine
};

// The lines of /metrics that parse_usage() reads, with the labels that it reads, in the same format: a fiftieth of the
// whole. Lines that make no sense are left out. At most kMostSamples.
inline constexpr std::size_t kMostSamples = 8192;
[[nodiscard]] std::string kept_metrics(std::string_view text);

// Parses the whole text, or what kept_metrics() left of it. An absent or senseless value is unknown.
[[nodiscard]] NodeUsage parse_usage(std::string_view text);

// The growth of counters per second since an earlier reading of the same agent. Where the agent has made no new sample
// in between, the earlier rates stand.
void add_rates(const NodeUsage& before, NodeUsage& now);

}  // namespace neuron::fleet
