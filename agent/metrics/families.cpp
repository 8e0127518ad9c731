#include "agent/metrics/families.h"

#include <algorithm>
#include <array>

#include "agent/metrics/families_parts.h"

namespace neuron::metrics {
namespace {

using model::HealthState;

const model::UsageSample* usable(const MetricsInput& input) {
  return input.now != nullptr && input.usage_age <= kOldestUsage ? input.now.get() : nullptr;
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

using Part = void (*)(const Scrape&, FamilySet&);

// In the order of metric_groups().
constexpr std::array<Part, 6> kParts = {add_neuron_monitor, add_devices,      add_cores,
                                        add_efas,           add_efa_counters, add_agent};

}  // namespace

Scrape::Scrape(const MetricsInput& of)
    : input(of),
      host(of.snapshot != nullptr ? of.snapshot->host : nothing),
      usage(usable(of)),
      rates(rates_of(of, host)),
      holders(of.holdings != nullptr ? *of.holdings : std::vector<holdings::Holding>{}),
      instance(labels_of(of.instance)) {}

void make_families(const MetricsInput& input, const FamilySink& sink) {
  const Scrape scrape(input);
  const auto groups = metric_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    FamilySet families(groups[i].metrics);
    kParts.at(i)(scrape, families);
    sink(std::move(families).take());
  }
}

std::string runtime_tag(const model::NeuronDevice& device, const std::vector<int>& physical_cores) {
  int pid = 0;
  if (!device.processes) return "";
  for (const model::Process& process : *device.processes) {
    const bool holds = std::any_of(physical_cores.begin(), physical_cores.end(), [&](int core) {
      return (process.core_mask.value_or(0) >> static_cast<unsigned>(core) & 1U) != 0;
    });
    if (!holds) continue;
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
