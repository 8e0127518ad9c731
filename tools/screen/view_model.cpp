#include "tools/screen/view_model.h"

#include <algorithm>
#include <array>
#include <set>

#include "agent/base/parse.h"
#include "agent/base/sorted.h"
#include "agent/core/catalogue.h"
#include "agent/core/complete.h"
#include "agent/core/hardware.h"
#include "agent/core/logical_cores.h"
#include "neuron_version.h"
#include "tools/render/text.h"

namespace neuron::screen {
namespace {

using Bytes = std::optional<std::uint64_t>;

std::string core_version_of(const model::HostScan& scan) {
  const int lnc = scan.lnc ? scan.lnc->value : 1;
  for (const model::NeuronDevice& device : scan.devices) {
    if (!device.family) continue;
    switch (*device.family) {
      case model::Family::inferentia:
        return "v1";
      case model::Family::inferentia2:
      case model::Family::trainium1:
        return "v2";
      case model::Family::trainium2:
        return lnc > 1 ? "v3d" : "v3";
      case model::Family::trainium3:
        return lnc > 1 ? "v4d" : "v4";
    }
  }
  return "";
}

// Unknown as soon as one kind is.
Bytes sum_of(const model::HostMemory& kinds) {
  Bytes sum = 0;
  for (const Bytes& bytes : kinds) core::add_bytes(sum, bytes);
  return sum;
}

CoreView core_view(const core::CoreRates& rates) {
  return {rates.id,
          rates.position,
          rates.utilization_percent,
          rates.flops_per_second,
          rates.device_memory_bytes,
          rates.host_memory_bytes,
          rates.device_memory};
}

// Unknown as soon as one is; no core at all is unknown too.
Bytes sum_of(const std::vector<CoreView>& cores, Bytes CoreView::*member) {
  if (cores.empty()) return std::nullopt;
  Bytes sum = 0;
  for (const CoreView& core : cores) core::add_bytes(sum, core.*member);
  return sum;
}

std::optional<double> mean_percent_of(const std::vector<CoreView>& cores) {
  double sum = 0;
  int known = 0;
  for (const CoreView& core : cores) {
    if (!core.percent) continue;
    sum += *core.percent;
    ++known;
  }
  if (known == 0) return std::nullopt;
  return sum / known;
}

EccView ecc_of(const model::DeviceSignals& signals) {
  return {signals.sram_ecc_corrected, signals.sram_ecc_uncorrected, signals.mem_ecc_corrected,
          signals.mem_ecc_uncorrected, signals.mem_ecc_repairable_uncorrected};
}

// Without the device's name at the beginning of the sentence, which stands beside it here.
model::Health without_name(model::Health health, const std::string& name) {
  std::string& sentence = health.sentence;
  if (name.empty() || !sentence.starts_with(name)) return health;
  const auto after = std::string_view(sentence).substr(name.size());
  if (after.starts_with(": ")) {
    sentence.erase(0, name.size() + 2);
  } else if (after.starts_with(" (")) {  // "rdmap16s25 (0000:10:19.0): ..."
    const auto end = sentence.find("): ");
    if (end != std::string::npos) sentence.erase(0, end + 3);
  }
  return health;
}

DeviceView device_view(const Moment& moment, std::size_t i) {
  const model::NeuronDevice& device = moment.scan.devices[i];
  DeviceView view;
  view.index = device.index;
  for (const core::CoreRates& core : moment.rates.cores) {
    if (core.device == device.index) view.cores.push_back(core_view(core));
  }
  if (view.cores.empty()) {  // nothing was read of them, but they are there
    const auto ids = core::core_ids_of(device, moment.scan);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      CoreView core;
      core.id = ids[k];
      core.position = static_cast<int>(k);
      view.cores.push_back(core);
    }
  }
  view.percent = mean_percent_of(view.cores);
  view.device_bytes = sum_of(view.cores, &CoreView::device_bytes);
  view.host_bytes = sum_of(view.cores, &CoreView::host_bytes);
  view.memory_size = device.memory_bytes;
  if (view.memory_size && view.device_bytes > view.memory_size) view.device_bytes.reset();
  view.health = without_name(device.health, "neuron" + std::to_string(device.index));
  view.ecc = ecc_of(device.signals);
  for (const auto& problem : device.problems) view.problems.push_back(printable(sentence(problem)));
  for (const model::DeviceUsage& usage : moment.sample.devices) {
    if (usage.index != device.index) continue;
    view.power = usage.power;
    view.host_kinds = usage.host_memory;
    if (const Bytes sum = sum_of(usage.host_memory)) view.host_bytes = sum;
  }
  for (const model::Process& process : device.processes.value_or(std::vector<model::Process>{})) {
    view.pids.push_back(process.pid);
  }
  std::ranges::sort(view.pids);
  return view;
}

std::optional<double> rate_of(const core::EfaRates& rates, const std::string& counter) {
  const auto found = rates.per_second.find(counter);
  if (found == rates.per_second.end()) return std::nullopt;
  return found->second;
}

Bytes error_sum(const model::EfaUsage& usage) {
  Bytes sum;
  for (const std::string_view name : core::efa_error_counters()) {
    const auto found = usage.counters.find(std::string(name));
    if (found != usage.counters.end()) sum = sum.value_or(0) + found->second;
  }
  return sum;
}

EfaView efa_view(const Moment& moment, std::size_t i) {
  const model::EfaInterface& efa = moment.scan.efas[i];
  EfaView view;
  view.name = efa.name.empty() ? to_string(efa.bdf) : printable(efa.name);
  view.numa_node = efa.numa_node;
  view.health = without_name(efa.health, efa.name.empty() ? view.name : efa.name);
  for (const auto& problem : efa.problems) view.problems.push_back(printable(sentence(problem)));
  if (efa.name.empty()) return view;
  for (const core::EfaRates& rates : moment.rates.efas) {
    if (rates.name != efa.name) continue;
    view.rx = rates.rx_bytes_per_second;
    view.tx = rates.tx_bytes_per_second;
    view.rdma_read = rate_of(rates, "rdma_read_bytes");
    view.rdma_write = rate_of(rates, "rdma_write_bytes");
    view.retransmits = rates.retrans_per_second;
    view.errors = rates.errors_per_second;
  }
  for (const model::EfaUsage& usage : moment.sample.efas) {
    if (usage.name == efa.name) view.errors_total = error_sum(usage);
  }
  return view;
}

// The driver's list for one process, device by device.
void add_holdings(ProcessView& view, const Moment& moment) {
  std::set<int> cores;
  view.device_bytes = view.host_bytes = 0;
  for (const model::NeuronDevice& device : moment.scan.devices) {
    for (const model::Process& process : device.processes.value_or(std::vector<model::Process>{})) {
      if (process.pid != view.pid) continue;
      view.devices.push_back(device.index);
      core::add_bytes(view.device_bytes, process.device_memory_bytes);
      core::add_bytes(view.host_bytes, process.host_memory_bytes);
      view.cores_known = view.cores_known && process.core_mask;
      const unsigned mask = process.core_mask.value_or(0);
      for (const core::CoreRates& core : moment.rates.cores) {
        if (core.device != device.index) continue;
        const auto held = [&](int physical) { return physical < 8 && ((mask >> physical) & 1U) != 0; };
        if (std::ranges::any_of(core.physical, held)) cores.insert(core.id);
      }
    }
  }
  view.cores.assign(cores.begin(), cores.end());
}

ProcessView process_view(const Moment& moment, const model::ProcessUsage& usage) {
  ProcessView view;
  view.pid = usage.pid;
  view.label = usage.tag && !usage.tag->empty() ? *usage.tag : std::to_string(usage.pid);
  view.command = usage.command;
  view.resident_bytes = usage.resident_bytes;
  add_holdings(view, moment);
  for (const core::ProcessRates& rates : moment.rates.processes) {
    if (rates.pid != usage.pid) continue;
    view.user_percent = rates.user_percent;
    view.system_percent = rates.system_percent;
  }
  return view;
}

// Cores of a device's resource id count for the pod too, and the other way round.
void add_holding(PodView& view, const model::Allocation& holding, const ViewModel& model) {
  const bool is_device = holding.resource_name.ends_with("/neuron") || holding.resource_name.ends_with("/neurondevice");
  const bool is_core = holding.resource_name.ends_with("/neuroncore");
  for (const std::string& id : holding.ids) {
    if (holding.resource_name.ends_with("/efa")) view.efas.push_back(printable(id));
    const auto number = is_device || is_core ? parse_int(id, 0, 1 << 20) : std::nullopt;
    if (!number) continue;
    for (const DeviceView& device : model.devices) {
      for (const CoreView& core : device.cores) {
        if (is_device ? device.index != *number : core.id != *number) continue;
        view.devices.push_back(device.index);
        view.cores.push_back(core.id);
      }
    }
  }
}

void add_claim(PodView& view, const model::Allocation& holding, const model::HostScan& host) {
  for (const std::string& device : holding.ids) {
    const auto name = core::parse_pool_name(device);
    if (!name) continue;
    const core::Hardware hardware = core::hardware_of(*name, host);
    for (const int index : hardware.device_indices()) view.devices.push_back(index);
    for (const int id : core::core_ids_of(hardware, host)) view.cores.push_back(id);
    for (const std::string& efa : hardware.efas) view.efas.push_back(printable(efa));
  }
}

std::vector<PodView> pod_views(const Moment& moment, const ViewModel& model) {
  std::map<std::array<std::string, 3>, PodView> views;  // by name, container, claim
  for (const model::Allocation& holding : moment.pods) {
    if (!holding.claim.empty() && holding.resource_name != moment.claim_driver) continue;
    const std::string name = printable(holding.pod_namespace) + '/' + printable(holding.pod);
    PodView& view = views[{name, holding.container, holding.claim}];
    view.name = name;
    view.container = printable(holding.container);
    if (!holding.claim.empty()) view.claim_namespace = printable(holding.pod_namespace);
    view.claim = printable(holding.claim);
    holding.claim.empty() ? add_holding(view, holding, model) : add_claim(view, holding, moment.scan);
  }
  std::vector<PodView> pods;
  for (auto& [key, view] : views) {
    view.devices = sorted_unique(std::move(view.devices));
    view.cores = sorted_unique(std::move(view.cores));
    view.efas = sorted_unique(std::move(view.efas));
    if (!view.devices.empty() || !view.efas.empty()) pods.push_back(std::move(view));
  }
  return pods;
}

std::string why_no_devices(const model::HostScan& scan) {
  if (!scan.devices.empty()) return "";
  if (scan.layout != model::DriverLayout::none || !scan.driver_version.empty()) {
    return "the Neuron driver is loaded, but shows no device";
  }
  if (scan.neuron_pci_functions > 0) return "the Neuron driver is not loaded (modprobe neuron)";
  return "this machine has no Neuron device";
}

template <typename T>
bool holds(const std::vector<T>& values, const T& value) {
  return std::ranges::find(values, value) != values.end();
}

// The names of these pods, joined by ",".
template <typename Matches>
std::string pods_where(const ViewModel& model, Matches matches) {
  std::set<std::string> names;
  for (const PodView& pod : model.pods) {
    if (matches(pod)) names.insert(pod.name);
  }
  return render::joined(names, ",");
}

// Of the machine, then of each device and interface.
void add_problems(ViewModel& model, const model::HostScan& scan) {
  for (const auto& problem : scan.problems) model.problems.push_back(printable(sentence(problem)));
  const auto add = [&](const std::string& name, const std::vector<std::string>& problems) {
    for (const std::string& problem : problems) {
      model.problems.push_back(problem.find(name) == std::string::npos ? name + ": " + problem : problem);
    }
  };
  for (const DeviceView& device : model.devices) add("neuron" + std::to_string(device.index), device.problems);
  for (const EfaView& efa : model.efas) add(efa.name, efa.problems);
}

}  // namespace

ViewModel make_view_model(const Moment& moment) {
  const model::HostScan& scan = moment.scan;
  ViewModel model;
  model.version = kVersion;
  model.instance_id = printable(scan.instance_id);
  model.instance_type = printable(scan.instance_type);
  model.driver_version = printable(scan.driver_version);
  model.core_version = core_version_of(scan);
  model.lnc = scan.lnc ? scan.lnc->value : 0;
  for (std::size_t i = 0; i < scan.devices.size(); ++i) model.devices.push_back(device_view(moment, i));
  for (std::size_t i = 0; i < scan.efas.size(); ++i) model.efas.push_back(efa_view(moment, i));
  for (const auto& usage : moment.sample.processes) model.processes.push_back(process_view(moment, usage));
  model.pods = pod_views(moment, model);
  model.mean_percent = moment.rates.mean_utilization;
  model.cpu = moment.rates.cpu;
  model.runtime_cpu = moment.rates.all_processes;
  model.cpu_count = moment.sample.cpu_count;
  model.memory = moment.sample.memory;
  model.seconds = moment.rates.seconds;
  if (moment.rates.stands_still) model.no_rates = "captured machine, values are constant";
  model.no_utilization = moment.sample.no_utilization.empty() ? model.no_rates : moment.sample.no_utilization;
  model.no_processes = moment.sample.no_processes;
  model.no_pods = moment.no_pods;
  model.no_devices = why_no_devices(scan);
  if (const auto* type = core::find_instance_type(scan.instance_type)) model.expected_devices = type->device_count;
  add_problems(model, scan);
  return model;
}

std::string pods_of_device(const ViewModel& model, const DeviceView& device) {
  return pods_where(model, [&](const PodView& pod) { return holds(pod.devices, device.index); });
}

std::string pods_of_process(const ViewModel& model, const ProcessView& process) {
  return pods_where(model, [&](const PodView& pod) {
    return std::ranges::any_of(process.cores, [&](int core) { return holds(pod.cores, core); });
  });
}

std::string pods_of_efa(const ViewModel& model, const std::string& name) {
  return pods_where(model, [&](const PodView& pod) { return holds(pod.efas, name); });
}

}  // namespace neuron::screen
