#include "test/unit/metrics/loaded_node.h"

#include <chrono>
#include <memory>

#include "agent/core/catalogue.h"
#include "agent/core/logical_cores.h"
#include "agent/health/assess.h"
#include "agent/metrics/families.h"
#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using metrics::MetricsInput;
using model::UsageSample;
using namespace std::chrono_literals;

model::HostScan sound_host(const std::string& instance_type, int lnc) {
  model::HostScan scan = silent_scan(instance_type);
  scan.instance_id = "i-0123456789abcdef0";
  scan.efa_driver_version = "2.17.2g";
  if (lnc != 0) scan.lnc = model::Sourced<int>{lnc, model::Origin::live};
  for (model::NeuronDevice& device : scan.devices) {
    device.serial = "00000000000000a" + std::to_string(device.index % 10);
    device.signals.sram_ecc_corrected = device.signals.mem_ecc_corrected = 0;
    device.signals.hw_error_events = 0;
    device.processes.emplace();
  }
  health::AssessMemory memory;
  return health::assess(std::move(scan), memory, SteadyTime{}).host;
}

// After `seconds` of work; of an idle node 0 work.
UsageSample sample_of(const model::HostScan& host, std::uint64_t seconds, std::uint64_t work) {
  UsageSample sample;
  sample.at = SteadyTime{} + std::chrono::seconds(seconds);
  for (const model::NeuronDevice& device : host.devices) {
    model::DeviceUsage& usage = sample.devices.emplace_back();
    usage.index = device.index;
    usage.power = model::PowerUsage{1.5, 62.25, 31};
    usage.host_memory.fill(4096 * work);
    for (const model::CoreSignals& signals : device.cores) {
      model::CoreUsage& core = usage.cores.emplace_back();
      core.physical_index = signals.physical_index;
      core.busy_us = work * 750'000;
      core.flops = work * 91'000'000'000;
      core.inferences = work * 12;
      core.device_memory_bytes = work * 1'000'000;
      core.host_memory_bytes = work * 10'000;
      core.device_memory.fill(work * 90'000);
      core.executions.fill(work * 3);
    }
  }
  for (const model::EfaInterface& efa : host.efas) {
    model::EfaUsage& usage = sample.efas.emplace_back();
    usage.name = efa.name;
    for (const metrics::Metric& counter : metrics::metrics_of(metrics::Subject::efa_counters)) {
      if (counter.type != metrics::MetricType::counter) continue;
      usage.counters.emplace(counter.name.substr(metrics::kEfaCounterPrefix.size()), work * 1'234'567);
    }
  }
  sample.cpu = model::CpuTicks{100 * work, 50 * work, 1000 * seconds, 0};
  sample.cpu_count = 192;
  sample.memory = model::HostMemoryUsage{std::uint64_t{2} << 40U, std::uint64_t{1} << 40U, 0, 0};
  return sample;
}

holdings::Holding held(model::Resource resource, int unit, const std::string& by) {
  holdings::Holding holding;
  holding.resource = resource;
  holding.units = {unit};
  holding.holder = holding.shown_as = by;
  return holding;
}

std::vector<holdings::Holding> one_each(const model::HostScan& host) {
  std::vector<holdings::Holding> all;
  for (const model::NeuronDevice& device : host.devices) {
    for (const int core : core::core_ids_of(device, host)) {
      holdings::Holding holding =
          held(model::Resource::neuroncore, core, "research-team/llama-pretraining-" + std::to_string(core) + "/main");
      holding.cores = {core};
      holding.devices = {device.index};
      all.push_back(std::move(holding));
    }
  }
  for (int efa = 0; efa < static_cast<int>(host.efas.size()); ++efa) {
    all.push_back(held(model::Resource::efa, efa, "research-team/llama-network-" + std::to_string(efa) + "/main"));
  }
  return all;
}

metrics::AgentFigures busy_agent() {
  metrics::AgentFigures agent;
  agent.version = "0.1.0";
  agent.start_time_seconds = 1789180800;
  agent.scans = 4711;
  agent.last_scan_seconds = 0.0125;
  for (const char* method : {"Allocate", "GetPreferredAllocation", "PreStartContainer"}) {
    agent.calls[method] = {{0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30}, {9, 3, 1, 0, 0, 0, 0, 0, 1}, 31.25};
    agent.calls_failed[method] = 1;
  }
  for (const char* reason : {"not_scanned", "no_ids", "asked_twice", "too_many_ids", "unknown_id", "unhealthy",
                             "not_offered", "held", "held_by_claim", "other_hardware"}) {
    agent.refusals[reason] = 2;
  }
  for (const model::Resource resource : model::kAllResources) {
    const std::string name(resource_name(resource));
    agent.allocations[name] = 8;
    agent.registrations[name] = 1;
    agent.registered[name] = true;
  }
  agent.api_calls = {{"ok", 12}, {"error", 1}};
  return agent;
}

MetricsInput node(const std::string& instance_type, int lnc, std::uint64_t work) {
  MetricsInput input;
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = snapshot->generation = 1;
  snapshot->host = sound_host(instance_type, lnc);
  input.before = std::make_shared<UsageSample>(sample_of(snapshot->host, 10, 10 * work));
  input.now = std::make_shared<UsageSample>(sample_of(snapshot->host, 20, 20 * work));
  input.usage_age = 1500ms;
  input.instance = {"node-1", snapshot->host.instance_id, instance_type, "us-east-1c", "us-east-1", "", ""};
  input.snapshot = std::move(snapshot);
  input.agent.version = "0.1.0";
  return input;
}

}  // namespace

MetricsInput idle_node(const std::string& instance_type) {
  return node(instance_type, 0, 0);
}

MetricsInput loaded_node(const std::string& instance_type, int lnc) {
  MetricsInput input = node(instance_type, lnc, 1);
  input.instance.ultraserver_id = "0123456789abcdef";
  holdings_of(input) = one_each(input.snapshot->host);
  for (const model::Resource resource : model::kAllResources) input.offered.push_back({resource, 16, 15, 14, 2, 1});
  input.agent = busy_agent();
  return input;
}

model::HostScan& host_of(MetricsInput& input) {
  auto copy = std::make_shared<model::Snapshot>(input.snapshot != nullptr ? *input.snapshot : model::Snapshot{});
  input.snapshot = copy;
  return copy->host;
}

UsageSample& usage_of(MetricsInput& input) {
  auto copy = std::make_shared<UsageSample>(input.now != nullptr ? *input.now : UsageSample{});
  input.now = copy;
  return *copy;
}

std::vector<holdings::Holding>& holdings_of(MetricsInput& input) {
  auto copy = std::make_shared<std::vector<holdings::Holding>>();
  if (input.holdings != nullptr) *copy = *input.holdings;
  input.holdings = copy;
  return *copy;
}

}  // namespace neuron::test
