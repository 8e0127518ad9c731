#include "tools/neuron-top/collector.h"

#include <algorithm>
#include <utility>

#include "agent/core/usage_rates.h"
#include "tools/pods/pods.h"

namespace neuron::top {
namespace {

constexpr std::chrono::milliseconds kPodsDeadline{1000};

bool is_due(const std::optional<SteadyTime>& last, SteadyTime now, std::chrono::milliseconds period) {
  return !last || now - *last >= period;
}

void take_kinds(const model::DeviceUsage& from, model::DeviceUsage& to) {
  to.host_memory = from.host_memory;
  for (model::CoreUsage& core : to.cores) {
    for (const model::CoreUsage& other : from.cores) {
      if (other.physical_index == core.physical_index) core.device_memory = other.device_memory;
    }
  }
}

bool same_totals(const model::DeviceUsage& a, const model::DeviceUsage& b) {
  return std::equal(a.cores.begin(), a.cores.end(), b.cores.begin(), b.cores.end(),
                    [](const model::CoreUsage& one, const model::CoreUsage& other) {
                      return one.physical_index == other.physical_index &&
                             one.device_memory_bytes == other.device_memory_bytes &&
                             one.host_memory_bytes == other.host_memory_bytes;
                    });
}

}  // namespace

Result<std::unique_ptr<Collector>> Collector::open(CollectorOptions options) {
  TRY_ASSIGN(auto root, host::FsRoot::open(options.root));
  return std::unique_ptr<Collector>(new Collector(std::move(options), std::move(root)));
}

Collector::Collector(CollectorOptions options, host::FsRoot root)
    : options_(std::move(options)),
      root_(std::move(root)),
      scanner_(root_, {.with_topology = false,
                       .with_processes = true,
                       .with_device_users = true,
                       .kernel_log = host::KernelLogUse::where_allowed}),
      usage_(root_),
      kinds_usage_(root_) {}

void Collector::scan(SteadyTime now) {
  node_ = health::assess(scanner_.scan(), memory_, now).host;
  scanned_ = now;
}

void Collector::ask_for_pods(SteadyTime now) {
  auto pods = pods::query_pods(options_.kubelet_socket, kPodsDeadline);
  no_pods_ = pods ? "" : pods.error().message;
  pods_.clear();
  if (pods) pods_ = *std::move(pods);
  pods_asked_ = now;
}

// Kinds of memory of the devices that are new or whose totals moved; the others have those of the sample before.
void Collector::complete_kinds(model::UsageSample& sample) {
  model::HostScan moved = node_;
  moved.efas.clear();
  std::erase_if(moved.devices, [&](const model::NeuronDevice& device) {
    const auto* before = model::find_device(samples_.back().devices, device.index);
    const auto* now = model::find_device(sample.devices, device.index);
    return now == nullptr || (before != nullptr && same_totals(*before, *now));
  });
  model::UsageRequest request;
  request.power = request.efa = false;
  request.memory_kinds_of_all = true;
  for (model::NeuronDevice& device : moved.devices) device.processes.reset();
  model::UsageSample fresh;
  if (!moved.devices.empty()) fresh = kinds_usage_.read(moved, request, sample.at);
  for (model::DeviceUsage& device : sample.devices) {
    const auto* from = model::find_device(fresh.devices, device.index);
    if (from == nullptr) from = model::find_device(samples_.back().devices, device.index);
    if (from != nullptr) take_kinds(*from, device);
  }
}

model::UsageSample Collector::sample(model::UsageRequest request, SteadyTime now) {
  request.memory_kinds_of_all = samples_.empty() || is_due(kinds_read_, now, kKindsEvery);
  model::UsageSample sample = usage_.read(node_, request, now);
  if (request.memory_kinds_of_all) {
    kinds_read_ = now;
  } else {
    complete_kinds(sample);
  }
  return sample;
}

Moment Collector::collect(const model::UsageRequest& request) {
  const SteadyTime now = std::chrono::steady_clock::now();
  if (is_due(scanned_, now, options_.scan_every)) scan(now);
  if (options_.with_pods && is_due(pods_asked_, now, kPodsEvery)) ask_for_pods(now);
  samples_.push_back(sample(request, std::chrono::steady_clock::now()));
  const model::UsageSample& newest = samples_.back();
  while (samples_.size() > 2 && newest.at - samples_[1].at >= kLeastWindow) samples_.pop_front();
  Moment moment{node_, newest, {}, pods_, no_pods_, options_.claim_driver};
  moment.rates = core::usage_rates(samples_.front(), newest, node_);
  return moment;
}

}  // namespace neuron::top
