#include "agent/host/usage_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string_view>

#include "agent/core/complete.h"
#include "agent/core/usage_rates.h"
#include "agent/host/attributes.h"
#include "agent/host/neuron_sysfs.h"
#include "agent/host/proc_files.h"

namespace neuron::host {

using model::CoreUsage;
using model::DeviceUsage;
using model::DriverLayout;
using model::HostScan;
using model::Presence;
using model::ScanPart;
using model::UsageRequest;
using model::UsageSample;

namespace {

constexpr std::size_t kMaxProcStat = std::size_t{4} << 20U;  // the line "intr" grows with interrupts times CPUs
constexpr std::size_t kMaxProcMeminfo = std::size_t{64} << 10U;
constexpr std::size_t kMaxCountersPerFolder = 64;
constexpr const char* kLostCommands = "no_completion_cmds";
constexpr std::size_t kMaxProcesses = 1024;  // 64 devices with 16 each, the most the driver admits

std::optional<std::uint64_t> read_number(const FsRoot& directory, const std::string& path) {
  const auto value = directory.read_attribute(path).and_then(parse_counter);
  return value ? std::optional(*value) : std::nullopt;
}

// Name to path of the counters in `folder`, which ends in a slash; nullopt when it is there and cannot be read.
std::optional<std::map<std::string, std::string>> list_counters(const FsRoot& directory, const std::string& folder) {
  std::map<std::string, std::string> counters;
  auto files = directory.list(folder);
  if (!files && !is_absent(files.error())) return std::nullopt;
  if (!files) return counters;
  files->resize(std::min(files->size(), kMaxCountersPerFolder));
  for (const std::string& file : *files) {
    if (file != "lifespan" && is_rdma_name(file)) counters.emplace(file, folder + file);
  }
  return counters;
}

// `total` of every kind below `folder`, which ends in a slash.
template <typename Kind, std::size_t N>
void read_kinds(const FsRoot& directory, const std::string& folder,
                std::array<std::optional<std::uint64_t>, N>& values) {
  std::string path;
  for (std::size_t i = 0; i < N; ++i) {
    path.assign(folder).append(to_string(static_cast<Kind>(i))).append("/total");
    values[i] = read_number(directory, path);
  }
}

bool wants_kinds(const UsageRequest& request, int device) {
  const auto& devices = request.memory_kinds_of;
  return request.memory_kinds_of_all || std::ranges::find(devices, device) != devices.end();
}

// The third of an interface's counters that is shown by default.
bool is_shown(std::string_view counter) {
  constexpr std::array<std::string_view, 8> kTraffic = {"rx_bytes",        "rx_pkts",         "tx_bytes",
                                                        "tx_pkts",         "retrans_bytes",   "retrans_pkts",
                                                        "rdma_read_bytes", "rdma_write_bytes"};
  const auto errors = core::efa_error_counters();
  return std::ranges::find(kTraffic, counter) != kTraffic.end() || std::ranges::find(errors, counter) != errors.end();
}

std::string why_not_live(const HostScan& scan) {
  const std::string driver = "driver " + (scan.driver_version.empty() ? "of unknown version" : scan.driver_version);
  switch (scan.layout) {
    case DriverLayout::none:
      return "no Neuron driver";
    case DriverLayout::bare:
      return driver + " has no counters (they came with 2.8)";
    case DriverLayout::stats:
    case DriverLayout::health_v1:
      return driver + " counts busy time only when a process ends (live from 2.30.2)";
    case DriverLayout::health_v2:
      return "";
    case DriverLayout::unknown:
      return driver + " has a layout unknown to this program";
  }
  return "";
}

bool has_busy_time(const UsageSample& sample) {
  return std::ranges::any_of(sample.devices, [](const DeviceUsage& device) {
    return std::ranges::any_of(device.cores, [](const CoreUsage& core) { return core.busy_us.has_value(); });
  });
}

// Of the driver's answers, ascending.
std::set<int> process_ids(const HostScan& scan) {
  std::set<int> ids;
  for (const model::NeuronDevice& device : scan.devices) {
    if (!device.processes) continue;
    for (const model::Process& process : *device.processes) {
      if (process.pid > 0 && ids.size() < kMaxProcesses) ids.insert(process.pid);
    }
  }
  return ids;
}

}  // namespace

UsageReader::Opened UsageReader::open(Kept& kept, const std::string& path) const {
  const auto id = root_.identify(path);
  if (id && kept.directory && kept.id == *id) return Opened::same;
  kept.directory.reset();
  if (!id) return Opened::nothing;
  auto directory = root_.subdirectory(path);
  if (!directory) return Opened::nothing;
  // The opened directory may already be another one.
  const auto opened = directory->identify_self();
  if (!opened) return Opened::nothing;
  kept.directory = *std::move(directory);
  kept.id = *opened;
  return Opened::anew;
}

// Closes handles of removed devices and interfaces.
void UsageReader::forget_others(const HostScan& scan) {
  const auto lacks = [](const auto& list, const auto& key, auto member) {
    return std::ranges::find(list, key, member) == list.end();
  };
  std::erase_if(devices_,
                [&](const auto& kept) { return lacks(scan.devices, kept.first, &model::NeuronDevice::index); });
  std::erase_if(efas_, [&](const auto& kept) { return lacks(scan.efas, kept.first, &model::EfaInterface::name); });
}

DeviceUsage UsageReader::read_device(const model::NeuronDevice& device, const UsageRequest& request,
                                     Counters counters) {
  DeviceUsage usage;
  usage.index = device.index;
  for (const model::CoreSignals& core : device.cores) usage.cores.emplace_back().physical_index = core.physical_index;
  Kept& kept = devices_[device.index];
  if (open(kept, device_path(device.index)) == Opened::nothing) return usage;
  const FsRoot& directory = *kept.directory;
  if (request.power) {
    if (const auto text = directory.read_attribute("stats/power/utilization")) usage.power = parse_power(*text);
  }
  const bool kinds = wants_kinds(request, device.index);
  if (kinds) read_kinds<model::HostMemoryKind>(directory, "stats/memory_usage/host_mem/", usage.host_memory);
  std::string path;
  for (CoreUsage& core : usage.cores) {
    const std::string folder = "neuron_core" + std::to_string(core.physical_index) + "/stats/";
    const auto number = [&](std::string_view name) { return read_number(directory, path.assign(folder).append(name)); };
    if (counters == Counters::live) {
      core.busy_us = number("other_info/nc_time_in_use/total");
      if (request.flops) core.flops = number("other_info/flop_count/total");
      if (request.flops) core.inferences = number("other_info/inference_count/total");
      if (request.executions) read_kinds<model::ExecutionStatus>(directory, folder + "status/", core.executions);
    }
    core.device_memory_bytes = number("memory_usage/device_mem/total");
    core.host_memory_bytes = number("memory_usage/host_mem/total");
    if (kinds) {
      read_kinds<model::DeviceMemoryKind>(directory, folder + "memory_usage/device_mem/", core.device_memory);
    }
  }
  return usage;
}

model::EfaUsage UsageReader::read_efa(const std::string& name, const UsageRequest& request) {
  model::EfaUsage usage;
  usage.name = name;
  KeptEfa& kept = efas_[name];
  const Opened opened = open(kept.device, "sys/class/infiniband/" + name);
  if (opened == Opened::nothing) return usage;
  const FsRoot& directory = *kept.device.directory;
  const bool has_none = kept.own && kept.own->empty() && kept.port && kept.port->empty();
  if (opened == Opened::anew || has_none) kept.own = kept.port = std::nullopt;
  if (!kept.own) kept.own = list_counters(directory, "hw_counters/");
  if (!kept.port) kept.port = list_counters(directory, "ports/1/hw_counters/");
  if (!kept.own) return usage;
  const auto wanted = [&](const std::string& counter) { return request.efa_every_counter || is_shown(counter); };
  for (const auto& [counter, path] : *kept.own) {
    if (!wanted(counter)) continue;
    if (const auto value = read_number(directory, path)) usage.counters.emplace(counter, *value);
  }
  // A dead device answers no command: a read of a port counter waits for it, or fails (docs/reference/efa.md#counters).
  // So none is read unless it is known that the device is not dead, or the driver has no such counter.
  if (kept.own->contains(kLostCommands)) {
    const auto lost = usage.counters.find(kLostCommands);
    if (lost == usage.counters.end() || lost->second > 0) return usage;
  }
  if (!kept.port) return usage;
  for (const auto& [counter, path] : *kept.port) {
    if (!wanted(counter)) continue;
    const auto value = directory.read_attribute(path).and_then(parse_counter);
    if (value) usage.counters.emplace(counter, *value);
    if (!value && value.error().os_errno == ENODEV) break;  // its admin queue is closed
  }
  return usage;
}

void UsageReader::read_platform(UsageSample& sample) const {
  if (const auto text = root_.read_file("proc/stat", kMaxProcStat)) {
    if (const auto times = parse_cpu_times(*text)) {
      sample.cpu = times->ticks;
      sample.cpu_count = times->cpu_count;
    }
  }
  if (const auto text = root_.read_file("proc/meminfo", kMaxProcMeminfo)) sample.memory = parse_memory(*text);
}

void UsageReader::read_processes(const HostScan& scan, const model::MayRead& may_read, UsageSample& sample) {
  const bool known =
      std::ranges::any_of(scan.devices, [](const model::NeuronDevice& device) { return device.processes.has_value(); });
  if (!known) {
    sample.no_processes = scan.devices.empty() ? "no Neuron devices"
                          : root_.is_live()
                              ? "users of the devices are visible only to root in the host's PID namespace"
                              : "no recorded driver answers in neuron-ioctl/";
    return;
  }
  if (!proc_counts_like_driver_) proc_counts_like_driver_ = proc_counts_like_the_driver(root_);
  for (const int pid : process_ids(scan)) {
    const bool may = *proc_counts_like_driver_ && may_read({ScanPart::Kind::host});
    if (may) {
      sample.processes.push_back(read_process(root_, pid));
    } else {
      sample.processes.emplace_back().pid = pid;
    }
  }
}

UsageSample UsageReader::read(const HostScan& scan, const UsageRequest& request, const model::MayRead& may_read,
                              SteadyTime now) {
  forget_others(scan);
  UsageSample sample;
  sample.at = now;
  sample.no_utilization = why_not_live(scan);
  const Counters counters = sample.no_utilization.empty() ? Counters::live : Counters::stale;
  for (const model::NeuronDevice& device : scan.devices) {
    const bool may = device.presence == Presence::present && may_read({ScanPart::Kind::device, device.index});
    if (may) {
      sample.devices.push_back(read_device(device, request, counters));
    } else {
      sample.devices.emplace_back().index = device.index;
    }
  }
  if (counters == Counters::live && !has_busy_time(sample)) {
    sample.no_utilization = "stats/other_info/nc_time_in_use is not readable on any device";
  }
  for (const model::EfaInterface& efa : scan.efas) {
    if (!request.efa || !is_rdma_name(efa.name)) continue;
    const bool may = efa.presence == Presence::present && may_read({ScanPart::Kind::efa, 0, efa.bdf});
    sample.efas.push_back(may ? read_efa(efa.name, request) : model::EfaUsage{efa.name, {}});
  }
  if (may_read({ScanPart::Kind::host})) read_platform(sample);
  read_processes(scan, may_read, sample);
  core::forget_impossible_memory(sample, scan);
  return sample;
}

}  // namespace neuron::host
