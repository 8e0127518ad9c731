#include "test/unit/top/moments.h"

#include <chrono>

#include "agent/core/usage_rates.h"
#include "test/unit/core/make_host.h"
#include "test/unit/render/golden.h"
#include "tools/screen/screen.h"

namespace neuron::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30U;
constexpr std::uint64_t kMicroseconds = 1'000'000;
constexpr int kBusyDevices = 4;

// Per cent that a core is busy: waves that differ from core to core, but always the same.
int busy_percent(int device, int core) {
  if (device >= kBusyDevices) return 0;
  return 55 + (device * 7 + core * 5) % 40;
}

model::DeviceUsage device_usage(const model::NeuronDevice& device, int second) {
  model::DeviceUsage usage;
  usage.index = device.index;
  const bool busy = device.index < kBusyDevices;
  usage.power = model::PowerUsage{1.5, busy ? 71.25 : 2.0, busy ? 48.5 : 1.75};
  usage.host_memory.fill(0);
  usage.host_memory[static_cast<std::size_t>(model::HostMemoryKind::dma_buffers)] = busy ? 64 * kMiB : 0;
  usage.host_memory[static_cast<std::size_t>(model::HostMemoryKind::application_memory)] = busy ? 4 * kGiB : 0;
  for (const model::CoreSignals& signals : device.cores) {
    model::CoreUsage core;
    core.physical_index = signals.physical_index;
    const auto busy_us = static_cast<std::uint64_t>(busy_percent(device.index, core.physical_index)) * 10'000;
    core.busy_us = kMicroseconds + busy_us * static_cast<std::uint64_t>(second);
    core.flops = busy_us * 80'000'000 * static_cast<std::uint64_t>(second);
    core.device_memory.fill(0);
    core.device_memory[static_cast<std::size_t>(model::DeviceMemoryKind::tensors)] = busy ? 3 * kGiB : 0;
    core.device_memory[static_cast<std::size_t>(model::DeviceMemoryKind::model_code)] = busy ? 196 * kMiB : 0;
    core.device_memory_bytes = busy ? 3 * kGiB + 196 * kMiB : 0;
    core.host_memory_bytes = busy ? 512 * kMiB : 0;
    usage.cores.push_back(core);
  }
  return usage;
}

model::EfaUsage efa_usage(const std::string& name, int number, int second) {
  const std::uint64_t share = static_cast<std::uint64_t>(number) * 1'000'000'000;
  const std::uint64_t rate = number < 4 ? 12'500'000'000 - share : 0;
  const auto seconds = static_cast<std::uint64_t>(second);
  return {name,
          {{"rx_bytes", rate * seconds},
           {"tx_bytes", rate * seconds * 9 / 10},
           {"rdma_read_bytes", rate * seconds / 2},
           {"rdma_write_bytes", 0},
           {"retrans_pkts", 3 * seconds},
           {"rx_drops", number == 1 ? 17 : 0U},
           {"cmds_err", 0}}};
}

model::UsageSample sample_of(const model::HostScan& scan, int second) {
  model::UsageSample sample;
  sample.at = std::chrono::steady_clock::time_point(std::chrono::seconds(1000 + second));
  for (const model::NeuronDevice& device : scan.devices) sample.devices.push_back(device_usage(device, second));
  int number = 0;
  for (const model::EfaInterface& efa : scan.efas) sample.efas.push_back(efa_usage(efa.name, number++, second));
  const auto ticks = static_cast<std::uint64_t>(second);
  sample.cpu = model::CpuTicks{1000 + 120 * ticks, 500 + 30 * ticks, 100'000 + 12'650 * ticks, 0};
  sample.cpu_count = 128;
  sample.memory = model::HostMemoryUsage{512 * kGiB, 470 * kGiB, 0, 0};
  return sample;
}

void add_process(screen::Moment& moment, model::UsageSample& before, int pid, std::optional<std::string> tag,
                 const std::vector<int>& devices) {
  for (model::NeuronDevice& device : moment.scan.devices) {
    if (!device.processes) device.processes = std::vector<model::Process>{};
    if (std::find(devices.begin(), devices.end(), device.index) == devices.end()) continue;
    device.processes->push_back({pid, 0xff, 600 * kMiB, 6 * kGiB});
  }
  model::ProcessUsage usage;
  usage.pid = pid;
  usage.command = "/opt/venv/bin/python3 train.py --model llama-3-70b";
  usage.tag = std::move(tag);
  usage.user_ticks = 1000;
  usage.system_ticks = 200;
  usage.start_ticks = 77;
  usage.resident_bytes = 9 * kGiB;
  before.processes.push_back(usage);
  usage.user_ticks = 1064;
  usage.system_ticks = 213;
  moment.sample.processes.push_back(usage);
}

screen::Moment finished(screen::Moment moment, const model::UsageSample& before) {
  moment.rates = core::usage_rates(before, moment.sample, moment.scan);
  return moment;
}

screen::Moment quiet_moment(model::HostScan scan) {
  screen::Moment moment;
  moment.scan = std::move(scan);
  moment.scan.instance_id = "i-0123456789abcdef0";
  for (model::NeuronDevice& device : moment.scan.devices) {
    device.signals.sram_ecc_corrected = 0;
    device.signals.mem_ecc_corrected = device.index == 2 ? 12 : 0;
  }
  for (model::NeuronDevice& device : moment.scan.devices) device.health.state = model::HealthState::healthy;
  for (model::EfaInterface& efa : moment.scan.efas) efa.health.state = model::HealthState::healthy;
  moment.no_pods = "not asked for (--pods)";
  return moment;
}

}  // namespace

screen::Moment busy_moment(const std::string& instance_type) {
  screen::Moment moment = quiet_moment(test::scan_of(instance_type));
  model::UsageSample before = sample_of(moment.scan, 0);
  moment.sample = sample_of(moment.scan, 1);
  add_process(moment, before, 4290, "train-llama-70b", {0, 1});
  add_process(moment, before, 257726, std::nullopt, {2, 3});
  return finished(std::move(moment), before);
}

screen::Moment idle_moment(int devices) {
  model::HostScan scan = test::silent_scan("trn2.48xlarge");
  scan.instance_type = "trn2.other";
  scan.efas.clear();
  scan.devices.clear();
  for (int i = 0; i < devices; ++i) {
    scan.devices.push_back(test::make_device(i, model::Family::trainium2));
    scan.devices.back().processes = std::vector<model::Process>{};
  }
  screen::Moment moment = quiet_moment(core::complete(std::move(scan)));
  const model::UsageSample before = sample_of(moment.scan, 0);
  moment.sample = sample_of(moment.scan, 1);
  return finished(std::move(moment), before);
}

screen::Moment old_driver_moment(const std::string& instance_type) {
  screen::Moment moment = busy_moment(instance_type);
  moment.scan.driver_version = "2.27.4.0";
  moment.scan.layout = model::DriverLayout::stats;
  moment.sample.no_utilization = "driver 2.27.4.0 counts busy time only when a process ends (live from 2.30.2)";
  moment.sample.no_processes = "needs /dev/neuron*";
  moment.sample.processes.clear();
  for (model::NeuronDevice& device : moment.scan.devices) {
    device.processes.reset();
    device.signals.sram_ecc_corrected.reset();
    device.signals.mem_ecc_corrected.reset();
  }
  for (model::DeviceUsage& device : moment.sample.devices) {
    device.power.reset();
    for (model::CoreUsage& core : device.cores) core.busy_us.reset();
  }
  const model::UsageSample before = sample_of(moment.scan, 0);
  return finished(std::move(moment), before);
}

screen::Moment unhealthy_moment(const std::string& instance_type) {
  screen::Moment moment = busy_moment(instance_type);
  moment.scan.devices[3].signals.sram_ecc_uncorrected = 2;
  moment.scan.devices[3].health = {model::HealthState::unhealthy, "sram_ecc_uncorrected", "2 uncorrected SRAM errors",
                                   "replace the instance"};
  moment.scan.devices[5].signals.mem_ecc_repairable_uncorrected = 1;
  moment.scan.devices[5].health = {model::HealthState::degraded, "hbm_repairable", "an HBM row awaits repair",
                                   "reset the device when it is idle"};
  if (!moment.scan.efas.empty()) {
    moment.scan.efas[1].health = {model::HealthState::unhealthy, "efa_unbound", "the efa driver is not bound", ""};
  }
  return moment;
}

void add_pods(screen::Moment& moment) {
  moment.no_pods.clear();
  moment.pods = {{"team-a", "train-0", "main", "aws.amazon.com/neuron", {"0", "1"}},
                 {"team-a", "train-0", "main", "vpc.amazonaws.com/efa", {moment.scan.efas.front().name}},
                 {"team-b", "notebook", "nb", "aws.amazon.com/neuroncore", {"8", "9"}}};
}

void add_claims(screen::Moment& moment) {
  add_pods(moment);
  const std::string efa = "efa-" + moment.scan.efas.back().name;
  moment.pods.push_back(
      {"team-c", "infer-0", "main", "neuron.aws.com", {"neuron-device-5-core-1", efa}, "", "infer-0-chips"});
  moment.pods.push_back({"team-c", "ring", "main", "neuron.aws.com", {"neuron-group-8-11"}, "", "four-neighbours"});
  moment.pods.push_back({"team-d", "video", "main", "gpu.example.com", {"gpu-0"}, "", "gpus"});
}

Stage::Stage(const screen::Moment& moment) : model(screen::make_view_model(moment)) {
  model.version = "1.2.3";
  history.add(model);
}

std::string Stage::screen(int rows, int columns, const std::string& message) const {
  return screen::draw_screen(scene(), {message, false}, rows, columns).to_text();
}

std::string Stage::print(int columns) const {
  return screen::draw_print(scene(), columns).to_text();
}

void Stage::press(const std::string& keys) {
  for (const char key : keys) {
    state = screen::press(state, {screen::KeyCode::character, key}, screen::key_context(model, state));
  }
}

void Stage::press(screen::KeyCode code) {
  state = screen::press(state, {code, 0}, screen::key_context(model, state));
}

void expect_screen(const std::string& name, const std::string& actual) {
  expect_golden_file("test/unit/top/golden/" + name, actual);
}

}  // namespace neuron::test
