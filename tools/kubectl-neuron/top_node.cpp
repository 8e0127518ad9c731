#include <algorithm>
#include <set>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/top.h"

namespace neuron::fleet {
namespace {

std::optional<std::uint64_t> ecc_of(const DeviceUse& use, const char* type) {
  const auto found = use.ecc.find(type);
  if (found == use.ecc.end()) return std::nullopt;
  return found->second;
}

void add_devices(screen::Moment& moment, const report::NodeReport& report, const NodeUsage& usage) {
  for (std::size_t i = 0; i < moment.scan.devices.size(); ++i) {
    model::NeuronDevice& device = moment.scan.devices[i];
    const auto use = usage.devices.find(device.index);
    if (use != usage.devices.end()) {
      device.signals.mem_ecc_corrected = ecc_of(use->second, "mem_ecc_corrected");
      device.signals.mem_ecc_uncorrected = ecc_of(use->second, "mem_ecc_uncorrected");
      device.signals.sram_ecc_corrected = ecc_of(use->second, "sram_ecc_corrected");
      device.signals.sram_ecc_uncorrected = ecc_of(use->second, "sram_ecc_uncorrected");
      moment.sample.devices.push_back({device.index, use->second.power, use->second.host_memory, {}});
    }
    if (i >= report.core_ids.size()) continue;
    int position = 0;
    for (const int id : report.core_ids[i]) {
      core::CoreRates rates;
      rates.id = id;
      rates.device = device.index;
      if (i < report.physical_cores.size() && static_cast<std::size_t>(position) < report.physical_cores[i].size()) {
        rates.physical = report.physical_cores[i][static_cast<std::size_t>(position)];
      }
      rates.position = position++;
      if (const auto core = usage.cores.find(id); core != usage.cores.end()) {
        rates.utilization_percent = core->second.percent;
        rates.flops_per_second = core->second.flops_per_second;
        rates.device_memory_bytes = core->second.device_bytes;
        rates.host_memory_bytes = core->second.host_bytes;
        rates.device_memory = core->second.kinds;
      }
      moment.rates.cores.push_back(std::move(rates));
    }
  }
}

std::optional<double> rate_of(const EfaUse& use, const char* counter) {
  const auto found = use.per_second.find(counter);
  if (found == use.per_second.end()) return std::nullopt;
  return found->second;
}

void add_efas(screen::Moment& moment, const NodeUsage& usage) {
  for (const model::EfaInterface& efa : moment.scan.efas) {
    const auto use = usage.efas.find(efa.name);
    if (use == usage.efas.end()) continue;
    core::EfaRates rates;
    rates.name = efa.name;
    rates.per_second = use->second.per_second;
    rates.rx_bytes_per_second = rate_of(use->second, "rx_bytes");
    rates.tx_bytes_per_second = rate_of(use->second, "tx_bytes");
    rates.retrans_per_second = rate_of(use->second, "retrans_pkts");
    model::EfaUsage counters;
    counters.name = efa.name;
    for (const auto& [counter, value] : use->second.counters)
      counters.counters[counter] = static_cast<std::uint64_t>(value);
    for (const std::string_view counter : core::efa_error_counters()) {
      if (const auto rate = rate_of(use->second, std::string(counter).c_str())) {
        rates.errors_per_second = rates.errors_per_second.value_or(0) + *rate;
      }
    }
    moment.rates.efas.push_back(std::move(rates));
    moment.sample.efas.push_back(std::move(counters));
  }
}

void add_machine(screen::Moment& moment, const report::NodeReport& report, const NodeUsage& usage) {
  moment.sample.cpu_count = usage.cpu_count;
  if (usage.cpu_user_percent && usage.cpu_system_percent) {
    moment.rates.cpu = core::CpuRates{*usage.cpu_user_percent, *usage.cpu_system_percent, 0};
  }
  if (usage.memory_total && usage.memory_used) {
    moment.sample.memory = model::HostMemoryUsage{
        *usage.memory_total, *usage.memory_total - std::min(*usage.memory_used, *usage.memory_total), {}, {}};
  }
  std::set<int> pids;
  for (const model::NeuronDevice& device : moment.scan.devices) {
    for (const model::Process& process : device.processes.value_or(std::vector<model::Process>{}))
      pids.insert(process.pid);
  }
  for (const int pid : pids) {
    model::ProcessUsage process;
    process.pid = pid;
    if (const auto command = report.commands.find(pid); command != report.commands.end())
      process.command = command->second;
    moment.sample.processes.push_back(std::move(process));
  }
}

std::vector<screen::PodView> pods_of(const report::NodeReport& report) {
  std::vector<screen::PodView> pods;
  for (const report::PodUse& use : *report.pods) {
    screen::PodView pod;
    pod.name = printable(use.pod_namespace) + '/' + printable(use.pod);
    pod.container = printable(use.container);
    pod.devices.assign(use.devices.begin(), use.devices.end());
    pod.cores.assign(use.cores.begin(), use.cores.end());
    for (const std::string& efa : use.efas) pod.efas.push_back(printable(efa));
    pod.claim = printable(use.claim);
    if (!use.claim.empty()) pod.claim_namespace = printable(use.pod_namespace);
    pods.push_back(std::move(pod));
  }
  return pods;
}

void add_mean(screen::ViewModel& model) {
  double sum = 0;
  std::size_t known = 0;
  for (const screen::DeviceView& device : model.devices) {
    for (const screen::CoreView& core : device.cores) {
      if (!core.percent) continue;
      sum += *core.percent;
      ++known;
    }
  }
  if (known > 0) model.mean_percent = sum / static_cast<double>(known);
}

}  // namespace

screen::ViewModel node_view(const Node& node, const NodeUsage& usage) {
  screen::Moment moment;
  if (node.report) {
    moment.scan = node.report->host;
    add_devices(moment, *node.report, usage);
    add_efas(moment, usage);
    add_machine(moment, *node.report, usage);
  }
  moment.rates.seconds = usage.has_rates ? 1 : 0;
  if (usage.cores.empty()) moment.sample.no_utilization = "the agent's metrics have none (yet)";
  screen::ViewModel model = make_view_model(moment);
  model.instance_id = printable(node.name);
  if (model.instance_type.empty()) model.instance_type = printable(node.instance_type);
  model.no_pods = node.report && node.report->pods ? "" : "the kubelet did not answer the agent";
  if (node.report && node.report->pods) model.pods = pods_of(*node.report);
  if (!node.report) model.no_devices = printable(node.report_missing, 300);
  add_mean(model);
  return model;
}

}  // namespace neuron::fleet
