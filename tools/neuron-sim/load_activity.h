#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/model/usage.h"

// What a workload can use of a host (LoadShape), and what it did in one step (Activity): all that load_workload.h and
// the files of load_host.h exchange. Passive data.
namespace neuron::sim {

struct LoadDevice {
  int index = 0;
  std::vector<int> cores;  // physical, ascending
};

struct LoadEfa {
  std::string name;
  double bytes_per_second = 0;  // line rate of one direction
};

// The part of a host that a workload uses.
struct LoadShape {
  std::vector<LoadDevice> devices;      // ascending index
  std::vector<LoadEfa> efas;            // in the order of their devices
  std::uint64_t core_memory_bytes = 0;  // device memory, per physical core
  double core_flops = 0;                // a second, of one busy physical core
  int cpus = 1;
  std::uint64_t host_memory_bytes = 0;
};

struct CoreActivity {
  int device = 0;
  int core = 0;
  int pid = 0;  // of the process that has it, 0 = none
  // Growth in this step.
  std::uint64_t busy_us = 0;
  std::uint64_t flops = 0;
  std::uint64_t inferences = 0;
  std::uint64_t model_loads = 0;
  // In use now.
  std::array<std::uint64_t, model::kDeviceMemoryKinds> device_memory{};
  std::uint64_t host_memory = 0;
};

// One process as the driver of one device names it.
struct ProcessShare {
  int pid = 0;
  unsigned core_mask = 0;
  std::uint64_t host_bytes = 0;
  std::uint64_t device_bytes = 0;
  friend bool operator==(const ProcessShare&, const ProcessShare&) = default;
};

struct DeviceActivity {
  int index = 0;
  std::array<std::uint64_t, model::kHostMemoryKinds> host_memory{};
  double power_percent = 0;                 // of the maximum, now
  std::optional<model::PowerUsage> minute;  // when a minute has ended in this step
  std::vector<ProcessShare> processes;      // ascending pid
  std::uint64_t corrected_errors = 0;       // ECC, growth in this step
};

struct EfaActivity {
  std::string name;
  std::map<std::string, std::uint64_t> growth;  // counter's path below the RDMA device, to growth
};

struct ProcessActivity {
  int pid = 0;
  std::vector<std::string> arguments;
  std::string tag;           // "" = none
  std::vector<int> devices;  // that it has open
  // Since the process began.
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t start_ticks = 0;  // since the load began
  std::uint64_t resident_bytes = 0;
};

// Everything of one step. The lists hold all devices, cores and interfaces of the shape, busy or not.
struct Activity {
  double seconds = 0;  // since the load began, at the end of the step
  std::vector<DeviceActivity> devices;
  std::vector<CoreActivity> cores;
  std::vector<EfaActivity> efas;
  std::vector<ProcessActivity> processes;  // ascending pid
  // Of all vCPUs, growth in this step.
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t idle_ticks = 0;
  std::uint64_t host_bytes = 0;  // in use now
};

inline constexpr int kTicksPerSecond = 100;  // USER_HZ of every kernel that has these devices

}  // namespace neuron::sim
