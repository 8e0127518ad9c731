#include "agent/metrics/families.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "agent/base/parse.h"

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

HolderLabels holders_of(const MetricsInput& input) {
  const std::vector<holdings::Holding>* const holdings = input.holdings.get();
  return holdings != nullptr ? HolderLabels(*holdings) : HolderLabels({});
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

// Some of the families of a group. Samples of a large node take about 1 MB per thousand with their labels, so that not
// all are made at once.
struct Part {
  Subject subject;
  void (*add)(const Scrape&, FamilySet&);
};

// In the order of metric_groups(), so that the text is in the order of the table.
constexpr std::array kParts = {
    Part{Subject::neuron_monitor, add_monitored_cores},
    Part{Subject::neuron_monitor, add_runtimes},
    Part{Subject::neuron_monitor, add_executions},
    Part{Subject::neuron_monitor, add_machine},
    Part{Subject::devices, add_devices},
    Part{Subject::cores, add_cores},
    Part{Subject::efas, add_efas},
    Part{Subject::efa_counters, add_efa_counters},
    Part{Subject::kernel_log, add_kernel_log},
    Part{Subject::agent, add_agent},
};

constexpr std::size_t kLongestValue = 255;  // bytes of a label's value: a pod's name may have 253

prometheus::MetricType type_of(MetricType type) {
  switch (type) {
    case MetricType::counter:
      return prometheus::MetricType::Counter;
    case MetricType::histogram:
      return prometheus::MetricType::Histogram;
    case MetricType::gauge:
    case MetricType::info:
      break;
  }
  return prometheus::MetricType::Gauge;
}

Labels labels_of(std::string_view name_space, std::string_view pod, std::string_view container) {
  return {{"namespace", std::string(name_space)}, {"pod", std::string(pod)}, {"container", std::string(container)}};
}

// Of "namespace/pod/container"; empty ones of any other text.
Labels labels_of(std::string_view shown_as) {
  const auto parts = split(shown_as, '/');
  return parts.size() == 3 ? labels_of(parts[0], parts[1], parts[2]) : labels_of("", "", "");
}

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
    FamilySet families(metrics_of(part.subject));
    part.add(scrape, families);
    sink(std::move(families).take());
  }
}

bool is_on(const model::Process& process, const std::vector<int>& physical_cores) {
  constexpr int kBits = 8;  // of the mask; a larger core number is an error in a file
  return std::ranges::any_of(physical_cores, [&](int core) {
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

void add_health(const model::Health& health, const Labels& labels, FamilySet::Family healthy, FamilySet::Family info) {
  if (!model::is_assessed(health)) return;
  if (health.state != HealthState::unknown) healthy.add(labels, health.state == HealthState::unhealthy ? 0 : 1);
  info.add(with(labels, {{"state", std::string(to_string(health.state))}, {"reason", health.reason}}), 1);
}

void add_presence(model::Presence presence, const Labels& labels, FamilySet::Family family) {
  if (presence == model::Presence::not_answering || presence == model::Presence::unread) return;
  family.add(labels, presence == model::Presence::present ? 1 : 0);
}

FamilySet::FamilySet(std::span<const Metric> metrics) {
  for (const Metric& metric : metrics) {
    prometheus::MetricFamily& family = families_.emplace_back();
    family.name = metric.name;
    family.help = metric.help;
    family.type = type_of(metric.type);
  }
}

FamilySet::Family FamilySet::operator[](std::string_view metric) {
  const auto found = std::ranges::find_if(families_, [metric](const auto& family) { return family.name == metric; });
  if (found != families_.end()) return Family(*found);
  prometheus::MetricFamily& family = families_.emplace_back();
  family.name = metric;
  return Family(family);
}

std::vector<prometheus::MetricFamily> FamilySet::take() && {
  std::vector<prometheus::MetricFamily> families;
  for (prometheus::MetricFamily& family : families_) {
    if (!family.metric.empty()) families.push_back(std::move(family));
  }
  return families;
}

prometheus::ClientMetric& FamilySet::Family::append(Labels labels) {
  prometheus::ClientMetric& metric = family_->metric.emplace_back();
  metric.label = std::move(labels);
  for (auto& label : metric.label) label.value = printable_line(std::move(label.value), kLongestValue);
  return metric;
}

void FamilySet::Family::add(Labels labels, double value) {
  if (!std::isfinite(value)) return;
  prometheus::ClientMetric& metric = append(std::move(labels));
  (family_->type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
}

void FamilySet::Family::add(Labels labels, const std::optional<std::uint64_t>& value) {
  if (value) add(std::move(labels), static_cast<double>(*value));
}

void FamilySet::Family::add(Labels labels, const std::optional<double>& value) {
  if (value) add(std::move(labels), *value);
}

void FamilySet::Family::add(Labels labels, prometheus::ClientMetric::Histogram value) {
  append(std::move(labels)).histogram = std::move(value);
}

Labels with(const Labels& labels, Labels more) {
  Labels all;
  all.reserve(labels.size() + more.size());
  all.insert(all.end(), labels.begin(), labels.end());
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return all;
}

HolderLabels::HolderLabels(const std::vector<holdings::Holding>& holdings) : free_(labels_of("", "", "")) {
  for (const holdings::Holding& holding : holdings) {
    const std::string& by = holding.shown_as.empty() ? holding.holder : holding.shown_as;
    const Held held{by, labels_of(holding.shown_as)};
    if (holding.resource == model::Resource::efa) {
      add(efas_, holding.units, held);
    } else {
      add(cores_, holding.cores, held);
      add(devices_, holding.devices, held);
    }
  }
}

void HolderLabels::add(Map& map, const std::vector<int>& units, const Held& held) {
  for (const int unit : units) {
    const auto [place, is_new] = map.try_emplace(unit, held);
    if (!is_new && place->second.by != held.by) place->second = {"", labels_of("", "", "")};
  }
}

const Labels& HolderLabels::find(const Map& map, int unit) const {
  const auto found = map.find(unit);
  return found == map.end() ? free_ : found->second.labels;
}

}  // namespace neuron::metrics
