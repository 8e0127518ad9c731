#include "agent/metrics/families.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "agent/metrics/families_parts.h"

namespace neuron::metrics {
namespace {

using model::HealthState;

const model::UsageSample* usable(const MetricsInput& input) {
  return input.now != nullptr && input.usage_age <= kOldestUsage ? input.now.get() : nullptr;
}

const model::HostScan& host_of(const MetricsInput& input, const model::HostScan& nothing) {
  const model::Snapshot* const snapshot = input.snapshot.get();
  return snapshot != nullptr ? snapshot->host : nothing;
}

Holders holders_of(const MetricsInput& input) {
  const std::vector<holdings::Holding>* const holdings = input.holdings.get();
  return holdings != nullptr ? Holders(*holdings) : Holders({});
}

core::UsageRates rates_of(const MetricsInput& input, const model::HostScan& host) {
  const model::UsageSample* const now = usable(input);
  if (now == nullptr) return {};
  return core::usage_rates(input.before != nullptr ? *input.before : *now, *now, host);
}

Labels labels_of(const Instance& instance) {
  Labels labels{{"instance_name", instance.name}, {"instance_id", instance.id},
                {"instance_type", instance.type}, {"availability_zone", instance.availability_zone},
                {"region", instance.region},      {"subnet_id", instance.subnet_id}};
  if (!instance.ultraserver_id.empty()) labels.push_back({"ultraserver_id", instance.ultraserver_id});
  return labels;
}

// Some of the families of a group of the table: with labels of their own for each sample, those of a large node take
// about a megabyte each thousand, so not all are made at once.
struct Part {
  std::span<const Metric> (*metrics)();
  void (*add)(const Scrape&, FamilySet&);
};

// In the order of metric_groups(), so that the text is in the order of the table.
constexpr std::array kParts = {
    Part{neuron_monitor_metrics, add_monitored_cores},
    Part{neuron_monitor_metrics, add_runtimes},
    Part{neuron_monitor_metrics, add_executions},
    Part{neuron_monitor_metrics, add_machine},
    Part{device_metrics, add_devices},
    Part{core_metrics, add_cores},
    Part{efa_metrics, add_efas},
    Part{efa_counter_metrics, add_efa_counters},
    Part{kernel_log_metrics, add_kernel_log},
    Part{agent_metrics, add_agent},
};

}  // namespace

Scrape::Scrape(const MetricsInput& of)
    : input(of),
      host(host_of(of, nothing)),
      usage(usable(of)),
      rates(rates_of(of, host)),
      holders(holders_of(of)),
      instance(labels_of(of.instance)) {}

void make_families(const MetricsInput& input, const FamilySink& sink) {
  const Scrape scrape(input);
  for (const Part& part : kParts) {
    FamilySet families(part.metrics());
    part.add(scrape, families);
    sink(std::move(families).take());
  }
}

bool is_on(const model::Process& process, const std::vector<int>& physical_cores) {
  constexpr int kBits = 8;  // of the mask; more cores than that are a file's mistake
  return std::any_of(physical_cores.begin(), physical_cores.end(), [&](int core) {
    return core < kBits && (process.core_mask.value_or(0) >> static_cast<unsigned>(core) & 1U) != 0;
  });
}

std::string runtime_tag(const model::NeuronDevice& device, const std::vector<int>& physical_cores) {
  int pid = 0;
  if (!device.processes) return "";
  for (const model::Process& process : *device.processes) {
    if (!is_on(process, physical_cores)) continue;
    if (pid != 0) return "";
    pid = process.pid;
  }
  return pid != 0 ? std::to_string(pid) : "";
}

const model::NeuronDevice* find_device(const model::HostScan& host, int index) {
  const auto found = std::find_if(host.devices.begin(), host.devices.end(),
                                  [index](const model::NeuronDevice& device) { return device.index == index; });
  return found == host.devices.end() ? nullptr : &*found;
}

const model::DeviceUsage* find_device(const model::UsageSample& sample, int index) {
  const auto found = std::find_if(sample.devices.begin(), sample.devices.end(),
                                  [index](const model::DeviceUsage& device) { return device.index == index; });
  return found == sample.devices.end() ? nullptr : &*found;
}

void add_health(const model::Health& health, const Labels& labels, FamilySet::Family healthy, FamilySet::Family info) {
  if (!model::is_assessed(health)) return;
  if (health.state != HealthState::unknown) healthy.add(labels, health.state == HealthState::unhealthy ? 0 : 1);
  info.add(with(labels, {{"state", std::string(to_string(health.state))}, {"reason", health.reason}}), 1);
}

void add_presence(model::Presence presence, const Labels& labels, FamilySet::Family family) {
  if (presence == model::Presence::not_answering) return;
  family.add(labels, presence == model::Presence::present ? 1 : 0);
}

}  // namespace neuron::metrics
