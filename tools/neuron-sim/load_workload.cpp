#include "tools/neuron-sim/load_workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

// A kind of job on accelerator nodes. Passive data; the arguments are separated by blanks.
struct JobKind {
  std::string_view command;
  std::string_view tag;     // NEURON_PROCESS_TAG, "" = none
  double part_of_node = 0;  // fraction of all slots of the node that it asks for; at least one slot
  double low_level = 0;     // fraction of the time that a core is busy, mean over a wave: at least, and at most
  double high_level = 0;
  double wave = 0;        // amplitude of the busy fraction around the level
  double seconds = 0;     // how long it typically runs
  double inferences = 0;  // per busy second and core
  double traffic = 0;     // part of the line rate while the cores wait for each other
  double vcpus_per_slot = 0;
  double host_gib_per_slot = 0;
};

// The first three are the usual ones.
constexpr std::array<JobKind, 5> kKinds = {{
    {"/opt/venv/bin/python3 train_llama.py --tensor-parallel 8 --zero1", "train-llama-70b", 0.5, 0.72, 0.84, 0.08, 150,
     1.5, 0.7, 1.6, 6},
    {"/opt/venv/bin/python3 -m vllm.entrypoints.openai.api_server --model qwen3-8b", "serve-qwen3-8b", 0.13, 0.35, 0.65,
     0.25, 90, 55, 0, 1.1, 4},
    {"/opt/venv/bin/python3 embed.py --batch 64 --model e5-large", "", 0.07, 0.5, 0.8, 0.1, 45, 420, 0, 0.7, 1.5},
    {"/opt/venv/bin/python3 -m ipykernel_launcher -f kernel.json", "notebook", 0.07, 0.05, 0.25, 0.2, 60, 20, 0, 0.3,
     1},
    {"nccom-test -r 64 allr --minbytes 8 --maxbytes 8G", "", 0.25, 0.15, 0.3, 0.1, 30, 0, 0.9, 0.5, 0.3},
}};

using model::DeviceMemoryKind;
using model::HostMemoryKind;

constexpr double kBusiest = 0.92;      // of the time: no core is busy all the time
constexpr double kLoadingSeconds = 3;  // of a model
constexpr int kLoadingParts = 4;       // memory grows in so many parts while a model is loaded
constexpr double kMinute = 60;         // the driver rolls power up once per minute
constexpr double kFirstMinute = 12;    // the load begins somewhere within one
constexpr double kEfficiency = 0.45;   // of the peak, while busy
constexpr double kBackground = 0.004;  // of all vCPUs
constexpr double kKib = 1024;
constexpr double kGib = kKib * kKib * kKib;

std::uint64_t whole(double value) {
  return static_cast<std::uint64_t>(std::max(0.0, value));
}

// Removes and returns the integral part of `spare`.
std::uint64_t take_whole(double& spare) {
  const double part = std::floor(spare);
  spare -= part;
  return whole(part);
}

template <typename Values, typename Kind>
std::uint64_t& of(Values& values, Kind kind) {
  return values[static_cast<std::size_t>(kind)];
}

unsigned mask_of(const std::vector<int>& cores) {
  unsigned mask = 0;
  for (const int core : cores) mask |= 1U << static_cast<unsigned>(core % 8);
  return mask;
}

}  // namespace

Workload::Workload(LoadShape shape, std::uint64_t seed) : shape_(std::move(shape)), dice_(seed), noise_(~seed) {
  constexpr std::size_t kFewDevices = 2;
  std::size_t cores = 0;
  for (std::size_t i = 0; i < shape_.devices.size(); ++i) {
    const auto& device = shape_.devices[i];
    first_core_.push_back(cores);
    cores += device.cores.size();
    // On small nodes two jobs share a device, so that jobs start and end there too.
    const auto middle = device.cores.begin() + static_cast<std::ptrdiff_t>(device.cores.size() / 2);
    const bool halves = shape_.devices.size() <= kFewDevices && device.cores.size() >= 2;
    if (halves) slots_.push_back({i, {device.cores.begin(), middle}, false});
    if (!device.cores.empty())
      slots_.push_back({i, {halves ? middle : device.cores.begin(), device.cores.end()}, false});
  }
  minutes_.resize(shape_.devices.size());
  next_pid_ = 4000 + dice_.below(20000);
  next_error_ = noise_.between(5, 20);
}

Activity Workload::step(std::chrono::microseconds length) {
  const double seconds = std::chrono::duration<double>(length).count();
  end_jobs();
  begin_jobs();
  now_ += seconds;
  Activity activity;
  activity.seconds = now_;
  for (const LoadDevice& device : shape_.devices) {
    activity.devices.emplace_back().index = device.index;
    for (const int core : device.cores) {
      auto& idle = activity.cores.emplace_back();
      idle.device = device.index;
      idle.core = core;
    }
  }
  for (const LoadEfa& efa : shape_.efas) activity.efas.push_back({efa.name, {}});
  for (Job& job : jobs_) play_job(job, seconds, activity);
  play_power(seconds, activity);
  play_machine(seconds, activity);
  return activity;
}

void Workload::end_jobs() {
  std::erase_if(jobs_, [&](const Job& job) {
    if (job.end > now_) return false;
    for (const std::size_t slot : job.slots) slots_[slot].taken = false;
    return true;
  });
}

// A day begins with one job of each usual kind; later ones are random.
void Workload::begin_jobs() {
  constexpr std::size_t kAtOnce = 3;
  const auto kinds = static_cast<int>(kKinds.size());
  if (now_ > 0 && next_job_ > now_) return;
  for (std::size_t kind = 0; now_ == 0 && kind < kAtOnce; ++kind) begin_job(kind);
  if (now_ > 0) begin_job(static_cast<std::size_t>(dice_.below(kinds)));
  next_job_ = now_ + dice_.between(4, 15);
}

// Takes the first run of free slots that is long enough; where there is none, nothing begins.
void Workload::begin_job(std::size_t kind_number) {
  Job job;
  job.kind = kind_number;
  const JobKind& kind = kKinds[job.kind];
  const auto wanted = std::max<std::size_t>(1, whole(kind.part_of_node * static_cast<double>(slots_.size()) + 0.5));
  for (std::size_t i = 0; i < slots_.size() && job.slots.size() < wanted; ++i) {
    if (slots_[i].taken)
      job.slots.clear();
    else
      job.slots.push_back(i);
  }
  next_pid_ += 1 + dice_.below(60);
  job.pid = next_pid_;
  job.begin = now_;
  job.ready = now_ + kLoadingSeconds;
  job.end = job.ready + kind.seconds * dice_.between(0.5, 1.5);
  job.level = dice_.between(kind.low_level, kind.high_level);
  job.wave_seconds = dice_.between(6, 20);
  job.memory_share = dice_.between(0.2, 0.55);
  if (job.slots.size() < wanted) return;
  for (const std::size_t slot : job.slots) slots_[slot].taken = true;
  jobs_.push_back(std::move(job));
}

double Workload::busy_part(const Job& job, std::size_t core) const {
  if (now_ < job.ready) return 0;
  const double turn = (now_ - job.begin) / job.wave_seconds + 0.015 * static_cast<double>(core);
  const double wave = std::sin(2 * std::numbers::pi * turn) * kKinds[job.kind].wave;
  return std::clamp(job.level + wave, 0.0, kBusiest);
}

void Workload::play_job(Job& job, double length, Activity& activity) {
  constexpr double kSystemPart = 0.15;
  const JobKind& kind = kKinds[job.kind];
  const double parts = std::ceil((now_ - job.begin) / kLoadingSeconds * kLoadingParts);
  const double loaded = std::min(1.0, parts / kLoadingParts);
  for (const std::size_t slot : job.slots) {
    play_cores(job, slots_[slot], length, loaded, activity);
    play_traffic(job, slots_[slot], length, activity);
  }
  const double most = 0.4 * shape_.cpus / static_cast<double>(jobs_.size());
  const double vcpus = std::min(most, kind.vcpus_per_slot * static_cast<double>(job.slots.size()));
  const double ticks = vcpus * noise_.between(0.8, 1.2) * length * kTicksPerSecond;
  job.user_ticks += ticks * (1 - kSystemPart);
  job.system_ticks += ticks * kSystemPart;
  spare_user_ += ticks * (1 - kSystemPart);
  spare_system_ += ticks * kSystemPart;
  describe_process(job, loaded, activity);
  job.began = true;
}

void Workload::play_cores(const Job& job, const Slot& slot, double length, double loaded, Activity& activity) {
  constexpr double kMicroseconds = 1e6;
  const JobKind& kind = kKinds[job.kind];
  const LoadDevice& device = shape_.devices[slot.device];
  const double memory = static_cast<double>(shape_.core_memory_bytes) * loaded;
  for (const int number : slot.cores) {
    const auto position = std::ranges::find(device.cores, number) - device.cores.begin();
    const std::size_t at = first_core_[slot.device] + static_cast<std::size_t>(position);
    CoreActivity& core = activity.cores[at];
    core.pid = job.pid;
    core.model_loads = job.began ? 0 : 1;
    const double busy = busy_part(job, at) * noise_.between(0.97, 1.0) * length;
    core.busy_us = whole(busy * kMicroseconds);
    core.flops = whole(busy * shape_.core_flops * kEfficiency);
    core.inferences = whole(busy * kind.inferences + noise_.between(0, 1));
    auto& kinds = core.device_memory;
    of(kinds, DeviceMemoryKind::tensors) = whole(memory * job.memory_share);
    of(kinds, DeviceMemoryKind::constants) = whole(memory * 0.11);
    of(kinds, DeviceMemoryKind::model_code) = whole(memory * 0.025);
    of(kinds, DeviceMemoryKind::model_shared_scratchpad) = whole(memory * 0.06);
    of(kinds, DeviceMemoryKind::runtime_memory) = whole(memory * 0.0004);
    of(kinds, DeviceMemoryKind::collectives) = kind.traffic > 0 ? whole(memory * 0.008) : 0;
    of(kinds, DeviceMemoryKind::notifications) = 1U << 20U;
    of(kinds, DeviceMemoryKind::dma_rings) = 3U << 20U;
    core.host_memory = whole(memory * 0.001);
  }
}

// Cores that wait for each other send: traffic is highest where the waves are low.
void Workload::play_traffic(const Job& job, const Slot& slot, double length, Activity& activity) const {
  constexpr double kMessage = 1 << 20;
  constexpr double kPacket = 8192;
  const JobKind& kind = kKinds[job.kind];
  if (kind.traffic <= 0 || shape_.efas.empty() || now_ < job.ready) return;
  const std::size_t nearest = slot.device * shape_.efas.size() / shape_.devices.size();
  const LoadEfa& efa = shape_.efas[nearest];
  const double part = kind.traffic * (1 - 0.5 * busy_part(job, first_core_[slot.device]));
  // Several slots may share an interface: each has its part of it.
  const double sharing = std::max(1.0, static_cast<double>(slots_.size()) / static_cast<double>(shape_.efas.size()));
  const double bytes = efa.bytes_per_second * part * length / sharing;
  auto& growth = activity.efas[nearest].growth;
  const auto grow = [&](const char* counter, double by) {
    growth["ports/1/hw_counters/" + std::string(counter)] += whole(by);
  };
  for (const char* counter : {"tx_bytes", "rx_bytes"}) grow(counter, bytes);
  for (const char* counter : {"tx_pkts", "rx_pkts"}) grow(counter, bytes / kPacket);
  for (const char* counter : {"rdma_write_bytes", "rdma_write_recv_bytes"}) grow(counter, bytes * 0.9);
  grow("rdma_write_wrs", bytes * 0.9 / kMessage);
  for (const char* counter : {"send_bytes", "recv_bytes"}) grow(counter, bytes * 0.1);
  for (const char* counter : {"send_wrs", "recv_wrs"}) grow(counter, bytes * 0.1 / kPacket);
  if (!job.began) {
    for (const char* counter : {"submitted_cmds", "completed_cmds"})
      growth["hw_counters/" + std::string(counter)] += 40;
  }
}

void Workload::play_power(double length, Activity& activity) {
  const bool roll = next_roll_ <= now_;
  for (std::size_t i = 0; i < shape_.devices.size(); ++i) {
    const std::size_t cores = shape_.devices[i].cores.size();
    double busy = 0;
    for (std::size_t core = 0; core < cores; ++core) {
      busy += static_cast<double>(activity.cores[first_core_[i] + core].busy_us) * 1e-6 / length;
    }
    const double part = cores == 0 ? 0 : busy / static_cast<double>(cores);
    const double percent = 7.5 + 72 * part + noise_.between(0, 1.5);
    activity.devices[i].power_percent = percent;
    Minute& minute = minutes_[i];
    minute.min = minute.seconds > 0 ? std::min(minute.min, percent) : percent;
    minute.max = std::max(minute.max, percent);
    minute.weighted += percent * length;
    minute.seconds += length;
    if (!roll) continue;
    activity.devices[i].minute = model::PowerUsage{minute.min, minute.max, minute.weighted / minute.seconds};
    minute = {};
  }
  if (roll) next_roll_ += next_roll_ == 0 ? kFirstMinute : kMinute;
  if (next_error_ > now_ || shape_.devices.empty()) return;
  activity.devices[static_cast<std::size_t>(noise_.below(static_cast<int>(shape_.devices.size())))].corrected_errors =
      1;
  next_error_ = now_ + noise_.between(15, 60);
}

void Workload::play_machine(double length, Activity& activity) {
  const double all = length * shape_.cpus * kTicksPerSecond;
  spare_user_ += all * kBackground;
  spare_system_ += all * kBackground / 2;
  activity.user_ticks = take_whole(spare_user_);
  activity.system_ticks = take_whole(spare_system_);
  spare_idle_ += all - static_cast<double>(activity.user_ticks + activity.system_ticks);
  activity.idle_ticks = take_whole(spare_idle_);
  activity.host_bytes = whole(static_cast<double>(shape_.host_memory_bytes) * 0.03);
  for (const ProcessActivity& process : activity.processes) activity.host_bytes += process.resident_bytes;
  activity.host_bytes = std::min(activity.host_bytes, shape_.host_memory_bytes);
}

// The process of a job in /proc and in the driver's answers.
void Workload::describe_process(const Job& job, double loaded, Activity& activity) const {
  const JobKind& kind = kKinds[job.kind];
  ProcessActivity process;
  process.pid = job.pid;
  for (const auto word : split(kind.command, ' ')) process.arguments.emplace_back(word);
  process.tag = kind.tag;
  process.user_ticks = whole(job.user_ticks);
  process.system_ticks = whole(job.system_ticks);
  process.start_ticks = whole(job.begin * kTicksPerSecond);
  const double most = 0.8 * static_cast<double>(shape_.host_memory_bytes) / static_cast<double>(slots_.size());
  const double per_slot = std::min(most, kind.host_gib_per_slot * kGib) * loaded;
  process.resident_bytes = whole(per_slot * static_cast<double>(job.slots.size()));
  for (const std::size_t slot : job.slots) {
    DeviceActivity& device = activity.devices[slots_[slot].device];
    auto& kinds = device.host_memory;
    of(kinds, HostMemoryKind::application_memory) += whole(per_slot * 0.9);
    of(kinds, HostMemoryKind::dma_buffers) += whole(256 * kKib);
    of(kinds, HostMemoryKind::dma_rings) += whole(512 * kKib);
    of(kinds, HostMemoryKind::notifications) += whole(64 * kKib);
    ProcessShare share{job.pid, mask_of(slots_[slot].cores), whole(per_slot * 0.9), 0};
    const std::size_t first = first_core_[slots_[slot].device];
    for (std::size_t i = 0; i < shape_.devices[slots_[slot].device].cores.size(); ++i) {
      const CoreActivity& core = activity.cores[first + i];
      if ((share.core_mask >> static_cast<unsigned>(core.core % 8) & 1U) != 0)
        share.device_bytes += total(core.device_memory);
    }
    const auto known =
        std::ranges::find_if(device.processes, [&](const ProcessShare& other) { return other.pid == job.pid; });
    if (known == device.processes.end()) {
      device.processes.push_back(share);
    } else {  // both halves of a device
      known->core_mask |= share.core_mask;
      known->host_bytes += share.host_bytes;
      known->device_bytes += share.device_bytes;
    }
    if (process.devices.empty() || process.devices.back() != device.index) process.devices.push_back(device.index);
  }
  activity.processes.push_back(std::move(process));
}

}  // namespace neuron::sim
