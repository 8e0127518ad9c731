#include "plugin/daemon/metrics_sources.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/host/usage_reader.h"
#include "agent/report/node_report.h"
#include "neuron_version.h"

namespace neuron::plugin {
namespace {

// A sample of a trn2.48xlarge reads 3,700 files, in five times the time of a scan; scrapes are 15 s or more apart.
std::chrono::milliseconds sample_interval(std::chrono::milliseconds scan_interval) {
  constexpr std::chrono::seconds kLongest{15};
  return std::min<std::chrono::milliseconds>(3 * scan_interval, kLongest);
}

// A reader that lives as long as a read of it may hang; it reads all inputs of metrics.
monitor::WatchedUsage::Scan make_read(const RootPtr& root, const monitor::SnapshotStore& store) {
  struct Machine {
    RootPtr root;
    host::UsageReader reader;
    explicit Machine(RootPtr opened) : root(std::move(opened)), reader(*root) {}
  };
  return [machine = std::make_shared<Machine>(root), &store](const model::MayRead& may_read) {
    const model::SnapshotPtr snapshot = store.newest();
    model::UsageRequest everything;
    everything.efa_every_counter = everything.executions = everything.flops = everything.memory_kinds_of_all = true;
    return machine->reader.read(snapshot ? snapshot->host : model::HostScan{}, everything, may_read);
  };
}

void log_unanswered(const std::vector<model::Unanswered>& parts) {
  if (parts.empty()) return spdlog::info("usage metrics complete again");
  std::string text;
  for (const model::Unanswered& one : parts) {
    text += (text.empty() ? "" : "; ") + to_string(one.part) + " has not returned since " + one.since;
  }
  spdlog::warn("usage metrics incomplete: {}", text);
}

std::uint64_t number_of(const monitor::SnapshotStore& store) {
  const model::SnapshotPtr newest = store.newest();
  return newest ? newest->number : 0;
}

metrics::Durations durations_of(const CallFigures::Calls& calls) {
  const auto& bounds = CallFigures::kBounds;
  return {{bounds.begin(), bounds.end()}, {calls.counts.begin(), calls.counts.end()}, calls.sum_seconds};
}

}  // namespace

metrics::Instance instance_of(const model::HostScan& host, const std::string& node_name, const kube::NodePlace& place) {
  metrics::Instance instance;
  instance.name = node_name;
  instance.id = host.instance_id;
  instance.type = host.instance_type;
  instance.availability_zone = place.zone;
  instance.region = place.region;
  if (host.ultraserver && !host.ultraserver->memberships.empty()) {
    instance.ultraserver_id = host.ultraserver->memberships.back().server_id;  // of the most nodes
  }
  return instance;
}

MetricsSources::MetricsSources(const RootPtr& machine, const Parts& parts, Ports ports)
    : parts_(parts),
      ports_(std::move(ports)),
      sampler_({[&workers = parts.workers](std::function<void()> job) { workers.run(std::move(job)); },
                [machine, &store = parts.store] { return make_read(machine, store); },
                [&store = parts.store] { return store.newest() != nullptr; },
                [&monitor = parts.monitor](SteadyTime when, std::function<void()> job) {
                  monitor.post(when, std::move(job));
                },
                log_unanswered},
               parts.clock, sample_interval(parts.scan_interval)),
      page_({[this] { return gather(); }, [&store = parts.store] { return number_of(store); }}, parts.clock),
      node_page_({[this] { return node_document(); }, [&store = parts.store] { return number_of(store); }},
                 parts.clock) {}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): what a std::function owns

void MetricsSources::set_registered(std::map<std::string, bool> registered) {
  const MutexLock lock(mutex_);
  holders_known_ = holders_known_ || std::ranges::any_of(registered, [](const auto& one) { return one.second; });
  registered_.swap(registered);
}

metrics::AgentFigures MetricsSources::agent_figures(const model::SnapshotPtr& snapshot) const {
  metrics::AgentFigures figures;
  figures.version = kVersion;
  figures.start_time_seconds = started_at_;
  figures.scans = snapshot ? snapshot->number : 0;
  figures.last_scan_seconds = parts_.scan_timer.last_seconds();
  const CallFigures::Counts counts = parts_.figures.counts();
  for (const auto& [method, calls] : counts.calls) {
    figures.calls.emplace(method, durations_of(calls));
    figures.calls_failed.emplace(method, calls.failed);
  }
  figures.refusals.insert(counts.refusals.begin(), counts.refusals.end());
  figures.allocations.insert(counts.allocations.begin(), counts.allocations.end());
  figures.registrations.insert(counts.registrations.begin(), counts.registrations.end());
  if (parts_.api != nullptr) figures.api_calls = parts_.api->counts();
  const MutexLock lock(mutex_);
  figures.registered = registered_;
  return figures;
}

metrics::MetricsInput MetricsSources::gather() {
  metrics::MetricsInput input;
  input.snapshot = ports_.numbered(parts_.store.newest());
  monitor::UsageSampler::Samples samples = sampler_.ask();
  // Of one sample there are no rates.
  input.before = samples.before ? std::move(samples.before) : samples.now;
  input.now = std::move(samples.now);
  const SteadyTime now = parts_.clock.now();
  {
    const MutexLock lock(mutex_);
    if (!first_asked_at_) first_asked_at_ = now;
    input.usage_age = now - (input.now ? input.now->at : *first_asked_at_);
  }
  auto holdings = std::make_shared<const std::vector<holdings::Holding>>(ports_.holdings());
  if (ports_.offered) input.offered = ports_.offered(*holdings);
  input.holdings = std::move(holdings);
  const kube::NodePlace place = parts_.api != nullptr ? parts_.api->place() : kube::NodePlace{};
  if (input.snapshot) input.instance = instance_of(input.snapshot->host, parts_.node_name, place);
  input.agent = agent_figures(input.snapshot);
  return input;
}

bool MetricsSources::knows_holders() const {
  const MutexLock lock(mutex_);
  return holders_known_;
}

std::optional<std::string> MetricsSources::node_document() const {
  const model::SnapshotPtr snapshot = ports_.numbered(parts_.store.newest());
  if (!snapshot) return std::nullopt;
  report::NodeReport report = report::make_node_report(snapshot->host);
  if (knows_holders() || (report.host.devices.empty() && report.host.efas.empty())) {
    report.pods = report::pod_uses(ports_.by_container ? ports_.by_container() : ports_.holdings(), report);
  }
  return report::node_report_json(report, report::JsonLayout::one_line);
}

}  // namespace neuron::plugin
