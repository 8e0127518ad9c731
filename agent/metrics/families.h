#pragma once

#include <prometheus/metric_family.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/usage_rates.h"
#include "agent/holdings/holding.h"
#include "agent/metrics/exposition.h"

// The one table of the metrics that a scrape shows, and the families made of it: they take type and help from it,
// docs/metrics.md is compared with it. Pure; the table has static lifetime.
namespace neuron::metrics {

enum class MetricType {
  counter,
  gauge,
  info,       // a gauge of 1; its labels are the facts
  histogram,  // with the label `le`
};

[[nodiscard]] std::string_view to_string(MetricType type);  // the enumerator's name

// Whether a series has the labels `namespace`, `pod` and `container` of the holder of its device, core or interface.
enum class Held { no, yes };

struct Metric {
  std::string_view name;
  MetricType type{};
  std::string_view labels;  // "neuroncore, runtime_tag": besides those of the group and of the holder
  Held held{};
  std::string_view help;    // in the text of a scrape and in docs/metrics.md
  std::string_view source;  // in docs/metrics.md: a file, or another origin; "" where the group's `about` is enough
};

// Metrics of one subject, a section of docs/metrics.md.
struct MetricGroup {
  std::string_view title;
  std::string_view labels;  // of every metric of the group, "" for none
  std::string_view about;   // how `source` is to be read
  std::span<const Metric> metrics;
};

// Labels of every series of neuron-monitor; `ultraserver_id` only where there is one.
inline constexpr std::string_view kInstanceLabels =
    "instance_name, instance_id, instance_type, availability_zone, region, subnet_id, ultraserver_id";

// EFA counters are node_amazonefa_<file>, so that dashboards of the EFA node exporter find them.
inline constexpr std::string_view kEfaCounterPrefix = "node_amazonefa_";

[[nodiscard]] std::span<const MetricGroup> metric_groups();  // in the order of a scrape; names are unique

enum class Subject {
  neuron_monitor,
  devices,
  cores,
  efas,
  efa_counters,
  kernel_log,
  agent
};  // the groups, in this order
[[nodiscard]] std::span<const Metric> metrics_of(Subject subject);

// Usage samples older than this are not used: their values would look current. Several times the sampling interval
// (plugin/daemon/metrics_sources.cpp).
inline constexpr std::chrono::seconds kOldestUsage{90};

using FamilySink = std::function<void(const std::vector<prometheus::MetricFamily>&)>;

// Passes the families of a scrape to `sink` in parts, so that those of a large node are not all in memory at once; in
// the order of the table of metrics. Families without samples are left out. Pure; any thread.
void make_families(const MetricsInput& input, const FamilySink& sink);

// The rest is shared by the files of the families.

using Labels = std::vector<prometheus::ClientMetric::Label>;

// Families of one scrape, those of a group of the table of metrics, in its order. An unknown value gets no sample,
// label values are made printable and bounded, and a family without samples is left out. Not synchronised.
class FamilySet {
 public:
  // One family that samples are added to. Valid as long as the set. Cheap to copy.
  class Family {
   public:
    void add(Labels labels, double value);  // no sample for NaN or infinity
    void add(Labels labels, const std::optional<std::uint64_t>& value);
    void add(Labels labels, const std::optional<double>& value);
    void add(Labels labels, prometheus::ClientMetric::Histogram value);

   private:
    friend class FamilySet;
    explicit Family(prometheus::MetricFamily& family) : family_(&family) {}
    prometheus::ClientMetric& append(Labels labels);

    prometheus::MetricFamily* family_;
  };

  explicit FamilySet(std::span<const Metric> metrics);

  // The family of one of the metrics. Another name is a mistake in the program; its family has no help, which the
  // tests detect.
  [[nodiscard]] Family operator[](std::string_view metric);

  [[nodiscard]] std::vector<prometheus::MetricFamily> take() &&;

 private:
  std::deque<prometheus::MetricFamily> families_;  // does not move what it holds
};

// `labels` and `more`: with(common, {{"usage_type", "user"}}).
[[nodiscard]] Labels with(const Labels& labels, Labels more);

// Labels of the container that holds a core, a device or an interface. Copies what it needs; immutable.
class HolderLabels {
 public:
  explicit HolderLabels(const std::vector<holdings::Holding>& holdings);

  // `namespace`, `pod` and `container`; all three empty when it is free, when several containers hold it (a device
  // whose cores went to different ones), and while the holder is unknown.
  [[nodiscard]] const Labels& of_core(int id) const { return find(cores_, id); }            // global logical core id
  [[nodiscard]] const Labels& of_device(int index) const { return find(devices_, index); }  // index of the device
  [[nodiscard]] const Labels& of_efa(int position) const { return find(efas_, position); }  // in HostScan::efas

 private:
  struct Held {
    std::string by;  // identifies the container
    Labels labels;
  };
  using Map = std::map<int, Held>;

  static void add(Map& map, const std::vector<int>& units, const Held& held);
  [[nodiscard]] const Labels& find(const Map& map, int unit) const;

  Labels free_;
  Map cores_;
  Map devices_;
  Map efas_;
};

// Input of the functions below. Refers to the MetricsInput, which must outlive it; immutable.
struct Scrape {
  explicit Scrape(const MetricsInput& input);

  const MetricsInput& input;
  model::HostScan nothing;          // stands for the host before the first scan
  const model::HostScan& host;      // the snapshot's
  const model::UsageSample* usage;  // null: none, or too old
  core::UsageRates rates;           // no cores without a sample
  HolderLabels holders;
  Labels instance;  // of neuron-monitor's metrics
};

// Each adds some families of one group of the table of metrics. neuron-monitor's names: cores; processes; results of
// executions; the machine and its ECC events.
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

// Whether the process holds one of these physical cores of its device, by the driver's mask.
[[nodiscard]] bool is_on(const model::Process& process, const std::vector<int>& physical_cores);

// The pid of the only process that holds one of these physical cores, as neuron-monitor's runtime_tag; "" when none
// or several do, or when that is unknown.
[[nodiscard]] std::string runtime_tag(const model::NeuronDevice& device, const std::vector<int>& physical_cores);

// Adds to `healthy` and `health_info` of a device, a core or an interface; nothing before an assessment.
void add_health(const model::Health& health, const Labels& labels, FamilySet::Family healthy, FamilySet::Family info);

// 1 present, 0 vanished, no sample while a read of it hangs.
void add_presence(model::Presence presence, const Labels& labels, FamilySet::Family family);

}  // namespace neuron::metrics
