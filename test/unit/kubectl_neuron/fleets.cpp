#include "test/unit/kubectl_neuron/fleets.h"

#include <algorithm>
#include <array>

#include "agent/core/logical_cores.h"
#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

report::PodUse use_of(const std::string& pod_namespace, const std::string& pod) {
  return {pod_namespace, pod, "main", {}, {}, {}};
}

}  // namespace

fleet::Node node_of(const std::string& name, const std::string& instance_type) {
  fleet::Node node;
  node.name = name;
  node.instance_type = instance_type;
  node.ready = true;
  node.mode = fleet::Mode::device_plugin;
  node.agent_pod = "kube-system/neuron-agent-" + name;
  node.report.emplace();
  report::NodeReport& report = *node.report;
  report.host = scan_of(instance_type);
  report.switched = core::find_instance_type(instance_type)->shape == core::TopologyShape::switched;
  for (model::NeuronDevice& device : report.host.devices) {
    device.health.state = model::HealthState::healthy;
    device.health.sentence = "no fault found";
    report.core_ids.push_back(core::core_ids_of(device, report.host));
  }
  for (model::EfaInterface& efa : report.host.efas)
    efa.health = {model::HealthState::healthy, "", "no fault found", ""};
  report.pods.emplace();
  node.allocatable["aws.amazon.com/neuron"] = static_cast<std::int64_t>(report.host.devices.size());
  return node;
}

void hold(fleet::Node& node, const std::string& pod_namespace, const std::string& pod, const std::vector<int>& devices,
          std::size_t first_efa, std::size_t efas) {
  report::NodeReport& report = *node.report;
  report::PodUse use = use_of(pod_namespace, pod);
  for (const int device : devices) {
    use.devices.insert(device);
    const auto& ids = report.core_ids.at(static_cast<std::size_t>(device));
    use.cores.insert(ids.begin(), ids.end());
  }
  for (std::size_t i = first_efa; i < std::min(first_efa + efas, report.host.efas.size()); ++i) {
    use.efas.insert(report.host.efas[i].name);
  }
  report.pods->push_back(std::move(use));
}

void hold_cores(fleet::Node& node, const std::string& pod_namespace, const std::string& pod,
                const std::vector<int>& cores) {
  report::NodeReport& report = *node.report;
  report::PodUse use = use_of(pod_namespace, pod);
  use.cores.insert(cores.begin(), cores.end());
  for (std::size_t i = 0; i < report.core_ids.size(); ++i) {
    const auto held = [&](int id) { return use.cores.contains(id); };
    if (std::ranges::any_of(report.core_ids[i], held)) use.devices.insert(report.host.devices[i].index);
  }
  report.pods->push_back(std::move(use));
}

void make_unhealthy(fleet::Node& node, std::size_t device) {
  node.report->host.devices.at(device).health = {model::HealthState::unhealthy, "sram_ecc_uncorrected",
                                                 "2 uncorrected SRAM errors", "replace the instance"};
}

fleet::Fleet small_fleet() {
  fleet::Fleet fleet;
  fleet.read_at = "2026-11-26T23:00:00Z";
  fleet::Node first = node_of("ip-10-0-1-17.us-west-2.compute.internal", "trn2.48xlarge");
  hold(first, "training", "llama-0", {0, 1, 2, 3}, 0, 4);
  hold(first, "training", "llama-1", {4, 5, 6, 7}, 4, 4);
  hold(first, "serving", "chat-7d9f4b8c6d-x2x5z", {8});
  hold_cores(first, "serving", "embed-0", {44, 45});
  hold_cores(first, "notebooks", "ada", {46});
  make_unhealthy(first, 13);
  fleet::Node second = node_of("ip-10-0-1-23.us-west-2.compute.internal", "trn2.48xlarge");
  hold(second, "training", "llama-2", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 0, 16);
  second.unschedulable = true;
  fleet::Node third;
  third.name = "ip-10-0-2-5.us-west-2.compute.internal";
  third.instance_type = "trn2.48xlarge";
  third.ready = true;
  third.allocatable["aws.amazon.com/neuron"] = 16;
  third.report_missing = "its agent (kube-system/neuron-agent-x7k2p, version 1.4.0) has no /node";
  fleet::Node fourth = node_of("ip-10-0-3-9.us-west-2.compute.internal", "inf2.48xlarge");
  hold(fourth, "serving", "chat-7d9f4b8c6d-b5w8q", {0, 1});
  fourth.report->host.devices[5].health = {model::HealthState::degraded, "hbm_repairable", "an HBM row awaits repair",
                                           ""};
  fleet.nodes = {std::move(first), std::move(second), std::move(third), std::move(fourth)};
  return fleet;
}

fleet::Fleet large_fleet(int nodes) {
  constexpr std::array<const char*, 8> kTypes = {"trn2.48xlarge", "trn2.48xlarge", "trn1.32xlarge", "trn2.48xlarge",
                                                 "inf2.48xlarge", "trn2.48xlarge", "trn1.32xlarge", "inf2.xlarge"};
  constexpr std::array<const char*, 5> kJobs = {"llama-70b", "mixtral", "whisper", "sd3-finetune", "eval"};
  fleet::Fleet fleet;
  fleet.read_at = "2026-11-26T23:00:00Z";
  for (int i = 0; i < nodes; ++i) {
    const auto number = static_cast<std::size_t>(i);
    std::string digits = std::to_string(i % 250 + 1);
    fleet::Node node =
        node_of("ip-10-" + std::to_string(i / 250) + "-4-" + digits, kTypes[number * 7 / 3 % kTypes.size()]);
    const int devices = static_cast<int>(node.report->host.devices.size());
    const int group = devices >= 16 && i % 3 != 0 ? 16 : std::max(devices / 4, 1);
    for (int from = 0, pod = 0; from + group <= devices; from += group, ++pod) {
      if ((i * 5 + pod * 3) % 7 == 0) continue;  // left free
      const auto job = static_cast<std::size_t>(i / 9 + pod) % kJobs.size();
      hold(node, job < 3 ? "training" : "research", std::string(kJobs[job]) + '-' + std::to_string(i * 4 + pod),
           range_of(from, group), static_cast<std::size_t>(from), static_cast<std::size_t>(group));
    }
    if (i % 23 == 5) make_unhealthy(node, number % node.report->host.devices.size());
    if (i % 41 == 7) node.ready = false;
    if (i % 37 == 3) {
      node.report.reset();
      node.report_missing = "its agent did not answer in 2 s";
    }
    fleet.nodes.push_back(std::move(node));
  }
  return fleet;
}

}  // namespace neuron::test
