#include "tools/neuron-sim/load_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/host_plan.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;

constexpr double kLateSeconds = 2;   // between changes of the files that may wait
constexpr int kFirstLiveMinor = 30;  // from 2.30.2 counters move while a process runs

// N of the names "<prefix><N>" in a folder, ascending.
std::vector<int> numbers_in(const std::string& folder, std::string_view prefix) {
  std::vector<int> numbers;
  for (const std::string& name : names_in(folder)) {
    const auto number = name.starts_with(prefix) ? parse_int(name.substr(prefix.size()), 0, 9999) : std::nullopt;
    if (number) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

// bf16, dense, of one physical core, in the order of model::Family: the published figure per device divided by its
// cores.
constexpr double kFlops[] = {16e12, 95e12, 95e12, 83e12, 84e12};

// "200 Gb/sec (4X HDR)" → bytes per second.
double line_rate(const std::string& text) {
  constexpr double kUsual = 100;
  constexpr double kBytesPerGigabit = 1e9 / 8;
  const auto gigabits = parse_int(text.substr(0, text.find(' ')), 1, 10000);
  return (gigabits ? *gigabits : kUsual) * kBytesPerGigabit;
}

std::string power_line(std::uint64_t epoch, const model::PowerUsage& power) {
  return fmt::format("POWER_STATUS_VALID,{},{:.2f},{:.2f},{:.2f}\n", epoch, power.min_percent, power.max_percent,
                     power.average_percent);
}

void add_growth(const CoreActivity& from, CoreActivity& to) {
  to.busy_us += from.busy_us;
  to.flops += from.flops;
  to.inferences += from.inferences;
  to.model_loads += from.model_loads;
}

}  // namespace

LoadHost::LoadHost(std::string dir, LoadFiles files)
    : dir_(std::move(dir)), files_(std::make_unique<LoadFiles>(std::move(files))) {
  const std::string version(trim(files_->read("sys/module/neuron/version").value_or("")));
  const auto generation = generation_of(version);
  counts_live_ = generation && generation->minor >= kFirstLiveMinor;
  const auto present = parse_int_list(trim(files_->read("sys/devices/system/cpu/present").value_or("")), 8191);
  shape_.cpus = present && !present->empty() ? static_cast<int>(present->size()) : 1;
  const std::string meminfo = files_->read("proc/meminfo").value_or("");
  for (const auto line : split(meminfo, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() < 2 || words.front() != "MemTotal:") continue;
    shape_.host_memory_bytes = parse_u64(words[words.size() - 2]).value_or(0) * 1024;
  }
  platform_ = std::make_unique<LoadPlatform>(*files_, shape_.cpus);
  processes_ = std::make_unique<LoadProcesses>(*files_, platform_->uptime_ticks());
}

void LoadHost::find_devices() {
  for (const int index : numbers_in(dir_ + "/sys/class/neuron_device", "neuron")) {
    const auto target = find_target(dir_, "neuron" + std::to_string(index));
    if (!target) continue;
    LoadDevice device{index, numbers_in(dir_ + "/" + target->folder, "neuron_core")};
    if (device.cores.empty()) continue;
    devices_[index].folder = target->folder + "/";
    for (const int core : device.cores) {
      devices_[index].own_host_memory += own_host_memory(core);
      cores_[{index, core}].folder = target->folder + "/neuron_core" + std::to_string(core) + "/stats/";
    }
    shape_.devices.push_back(std::move(device));
  }
  if (shape_.devices.empty()) return;
  const auto name = files_->read(devices_.begin()->second.folder + "info/architecture/device_name");
  const auto family = model::parse_family(trim(name.value_or(""))).value_or(model::Family::trainium1);
  const auto facts = core::family_facts(family);
  shape_.core_memory_bytes = facts.memory_bytes / static_cast<std::uint64_t>(std::max(1, facts.physical_cores));
  shape_.core_flops = kFlops[static_cast<std::size_t>(family)];
}

// Interfaces in the order of the devices they are near to, as far as the official table has them.
void LoadHost::find_interfaces() {
  std::map<std::string, LoadEfa> by_function;
  std::error_code error;
  for (const std::string& name : names_in(dir_ + "/sys/class/infiniband")) {
    const auto target = find_target(dir_, name);
    if (!target || !fs::is_directory(dir_ + "/" + target->rdma_folder + "/ports/1/hw_counters", error)) continue;
    efas_[name] = target->rdma_folder + "/";
    const std::string rate = files_->read(target->rdma_folder + "/ports/1/rate").value_or("");
    by_function[fs::path(target->folder).filename().string()] = {name, line_rate(rate)};
  }
  const auto take = [&](const std::string& function) {
    const auto found = by_function.find(function);
    if (found == by_function.end()) return;
    shape_.efas.push_back(found->second);
    by_function.erase(found);
  };
  const std::string type(trim(files_->read("sys/devices/virtual/dmi/id/product_name").value_or("")));
  if (const auto* facts = core::find_instance_type(type)) {
    for (const auto& device : facts->devices) {
      if (device.nearest_efa) take(model::to_string(*device.nearest_efa));
    }
  }
  while (!by_function.empty()) take(std::string(by_function.begin()->first));
}

Result<LoadHost> LoadHost::open(const std::string& dir) {
  TRY_ASSIGN(LoadFiles files, LoadFiles::open(dir));
  LoadHost host(dir, std::move(files));
  host.find_devices();
  if (host.shape_.devices.empty()) {
    return fail(ErrorCode::failed_precondition,
                dir + " has no Neuron devices with cores in a known layout; make a host with --driver 2.30.2.0");
  }
  host.find_interfaces();
  return host;
}

Result<void> LoadHost::write(const Activity& activity) {
  TRY_ASSIGN(const Fd held, lock_host(dir_));
  platform_->write(activity);
  processes_->write(activity);
  for (const CoreActivity& core : activity.cores) write_core(core);
  for (const DeviceActivity& device : activity.devices) write_device(device);
  for (const EfaActivity& efa : activity.efas) {
    for (const auto& [counter, growth] : efa.growth) files_->add(efas_[efa.name] + counter, growth);
  }
  if (activity.seconds < next_late_) return files_->state();
  next_late_ = activity.seconds + kLateSeconds;
  for (auto& [place, core] : cores_) count_late(core);
  return files_->state();
}

Result<void> LoadHost::finish() {
  TRY_ASSIGN(const Fd held, lock_host(dir_));
  for (auto& [place, core] : cores_) count_late(core);
  return files_->state();
}

// A memory folder after `before` became `now`, beside the driver's own memory: present is the size of the last change,
// peak the highest so far.
void LoadHost::write_memory(const std::string& folder, std::uint64_t before, std::uint64_t now, std::uint64_t own) {
  files_->set(folder + "/total", own + now);
  files_->set(folder + "/present", now > before ? now - before : before - now);
  const auto peak = parse_u64(files_->read(folder + "/peak").value_or(""));
  if (peak && *peak < own + now) files_->set(folder + "/peak", own + now);
}

void LoadHost::count(Core& core) {
  const std::string other = core.folder + "other_info/";
  files_->add(other + "nc_time_in_use/total", core.pending.busy_us);
  files_->add(other + "flop_count/total", core.pending.flops);
  files_->add(other + "inference_count/total", core.pending.inferences);
  files_->add(other + "model_load_count/total", core.pending.model_loads);
  add_growth(core.pending, core.late);
  core.pending = {};
  if (!counts_live_) count_late(core);
}

// `present`, and the executions behind the inferences. Live counters show the sum in both files, earlier drivers the
// last change in one of them.
void LoadHost::count_late(Core& core) {
  const std::string other = core.folder + "other_info/";
  const auto present = [&](const std::string& folder, std::uint64_t growth) {
    if (counts_live_) return files_->add(folder + "/present", growth);
    if (growth > 0) files_->set(folder + "/present", growth);
  };
  present(other + "nc_time_in_use", core.late.busy_us);
  present(other + "flop_count", core.late.flops);
  present(other + "inference_count", core.late.inferences);
  present(other + "model_load_count", core.late.model_loads);
  files_->add(core.folder + "status/success/total", core.late.inferences);
  present(core.folder + "status/success", core.late.inferences);
  core.late = {};
}

void LoadHost::write_core(const CoreActivity& activity) {
  Core& core = cores_[{activity.device, activity.core}];
  // Before 2.30.2 the driver counts the work of a process when the process ends.
  if (core.shown.pid != activity.pid) count(core);
  add_growth(activity, core.pending);
  if (counts_live_) count(core);
  const std::string memory = core.folder + "memory_usage/";
  const bool first = !std::exchange(core.written, true);
  for (std::size_t i = 0; i < activity.device_memory.size(); ++i) {
    const std::uint64_t before = core.shown.device_memory[i];
    const std::uint64_t now = activity.device_memory[i];
    if (!first && before == now) continue;
    write_memory(memory + "device_mem/" + std::string(to_string(static_cast<model::DeviceMemoryKind>(i))), before, now);
  }
  const std::uint64_t total_before = total(core.shown.device_memory);
  const std::uint64_t total_now = total(activity.device_memory);
  if (first || total_before != total_now) write_memory(memory + "device_mem", total_before, total_now);
  if (first || core.shown.host_memory != activity.host_memory) {
    write_memory(memory + "host_mem", core.shown.host_memory, activity.host_memory, own_host_memory(activity.core));
  }
  core.shown = activity;
}

void LoadHost::write_power(Device& device, const DeviceActivity& activity) {
  const std::string folder = device.folder + "stats/power/";
  if (activity.minute) {
    const std::string old = files_->read(folder + "utilization").value_or("");
    const auto fields = split(old, ',');
    const auto epoch = fields.size() == 5 ? parse_u64(fields[1]) : std::nullopt;
    constexpr std::uint64_t kStart = 1789180860;  // made up: the same load gives the same files
    if (epoch)
      files_->replace(folder + "utilization", power_line((*epoch > 0 ? *epoch : kStart) + 60, *activity.minute));
  }
  const auto raw = files_->read(folder + "utilization_raw");
  if (!raw || !raw->starts_with("die,util_bips,counter\n")) return;
  const int value = static_cast<int>(activity.power_percent * 100);
  const std::uint64_t counter = ++device.raw_power_counter;
  std::string text = fmt::format("die,util_bips,counter\n0,{},{}\n", value, counter);
  if (raw->find("\n1,") != std::string::npos) text += fmt::format("1,{},{}\n", value, counter);
  files_->replace(folder + "utilization_raw", text);
}

void LoadHost::write_device(const DeviceActivity& activity) {
  Device& device = devices_[activity.index];
  const bool first = !std::exchange(device.written, true);
  for (std::size_t i = 0; i < activity.host_memory.size(); ++i) {
    if (!first && device.host_memory[i] == activity.host_memory[i]) continue;
    const auto kind = static_cast<model::HostMemoryKind>(i);
    write_memory(device.folder + "stats/memory_usage/host_mem/" + std::string(to_string(kind)), device.host_memory[i],
                 activity.host_memory[i], kind == model::HostMemoryKind::driver_memory ? device.own_host_memory : 0);
  }
  device.host_memory = activity.host_memory;
  write_power(device, activity);
  files_->add(device.folder + "stats/hardware/mem_ecc_corrected", activity.corrected_errors);
}

}  // namespace neuron::sim
