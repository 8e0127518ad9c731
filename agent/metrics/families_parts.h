#pragma once

#include <string>

#include "agent/core/usage_rates.h"
#include "agent/metrics/family_set.h"
#include "agent/metrics/holders.h"
#include "agent/metrics/metrics_input.h"

// What the files of the families share. Each function adds some of the families of one group of the table of metrics.
namespace neuron::metrics {

// A scrape as its parts see it. Refers to the input, which must outlive it; immutable.
struct Scrape {
  explicit Scrape(const MetricsInput& input);

  const MetricsInput& input;
  model::HostScan nothing;          // stands for the host before the first scan
  const model::HostScan& host;      // the snapshot's
  const model::UsageSample* usage;  // null: none, or too old
  core::UsageRates rates;           // no cores without a sample
  Holders holders;
  Labels instance;  // of neuron-monitor's metrics
};

// neuron-monitor's names: of cores; of processes; of how executions ended; of the machine and its ECC events.
void add_monitored_cores(const Scrape& scrape, FamilySet& families);
void add_runtimes(const Scrape& scrape, FamilySet& families);
void add_executions(const Scrape& scrape, FamilySet& families);
void add_machine(const Scrape& scrape, FamilySet& families);

// The other groups.
void add_devices(const Scrape& scrape, FamilySet& families);
void add_cores(const Scrape& scrape, FamilySet& families);
void add_efas(const Scrape& scrape, FamilySet& families);
void add_efa_counters(const Scrape& scrape, FamilySet& families);
void add_kernel_log(const Scrape& scrape, FamilySet& families);
void add_agent(const Scrape& scrape, FamilySet& families);

// Whether the driver says that it holds one of these physical cores of its device.
[[nodiscard]] bool is_on(const model::Process& process, const std::vector<int>& physical_cores);

// The pid of the only process that holds one of these physical cores, as neuron-monitor's runtime_tag; "" when none
// does, several do, or nobody can say.
[[nodiscard]] std::string runtime_tag(const model::NeuronDevice& device, const std::vector<int>& physical_cores);

[[nodiscard]] const model::NeuronDevice* find_device(const model::HostScan& host, int index);      // nullptr: not there
[[nodiscard]] const model::DeviceUsage* find_device(const model::UsageSample& sample, int index);  // likewise

// Adds to `healthy` and `health_info` of a device, a core or an interface; nothing of what nobody has assessed.
void add_health(const model::Health& health, const Labels& labels, FamilySet::Family healthy, FamilySet::Family info);

// 1 present, 0 vanished, no sample while a read of it hangs.
void add_presence(model::Presence presence, const Labels& labels, FamilySet::Family family);

}  // namespace neuron::metrics
