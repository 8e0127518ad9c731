#include <nlohmann/json.hpp>

#include "tools/neuron-agent/explain_pod.h"
#include "tools/neuron-agent/reports.h"

namespace neuron::agent {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json health_json(const model::Health& health) {
  return {{"state", std::string(model::to_string(health.state))},
          {"reason", text_or_null(health.reason)},
          {"sentence", text_or_null(health.sentence)},
          {"action", text_or_null(health.action)}};
}

template <typename T>
Json sourced(const model::Maybe<T>& maybe, Json value) {
  if (!maybe) return nullptr;
  return {{"value", std::move(value)}, {"origin", maybe->origin == model::Origin::live ? "live" : "assumed"}};
}

Json units_json(const HeldUnits& units) {
  Json kubelet = Json::object();
  for (std::size_t i = 0; i < units.ids.size(); ++i) {
    const KubeletView view = units.kubelet[i];
    kubelet[units.ids[i]] = view == KubeletView::unknown   ? Json(nullptr)
                            : view == KubeletView::healthy ? Json("Healthy")
                                                           : Json("Unhealthy");
  }
  return {{"resource", units.resource}, {"claim", text_or_null(units.claim)}, {"admin_access", units.admin_access},
          {"ids", units.ids},           {"kubelet", std::move(kubelet)},      {"unknown_here", units.unknown}};
}

Json device_json(const ExplainedDevice& device) {
  const model::NeuronDevice facts = device.facts.value_or(model::NeuronDevice{});
  return {{"index", device.index},
          {"shown_by_the_machine", device.facts.has_value()},
          {"bdf", sourced(facts.bdf, facts.bdf ? Json(model::to_string(facts.bdf->value)) : Json(nullptr))},
          {"numa_node", sourced(facts.numa_node, facts.numa_node ? Json(facts.numa_node->value) : Json(nullptr))},
          {"core_ids", device.cores},
          {"physical_cores", device.physical_cores},
          {"whole", device.whole},
          {"health", health_json(device.health)},
          {"device_health", device.facts ? Json(std::string(model::to_string(facts.health.state))) : Json(nullptr)},
          {"shared_with", device.shared_with}};
}

Json efa_json(const ExplainedEfa& efa) {
  return {{"name", efa.name},
          {"shown_by_the_machine", efa.facts.has_value()},
          {"bdf", efa.facts ? Json(model::to_string(efa.facts->bdf)) : Json(nullptr)},
          {"numa_node", efa.facts ? or_null(efa.facts->numa_node) : Json(nullptr)},
          {"nearest_devices", efa.nearest_to},
          {"nearest_to_its_own", efa.is_near},
          {"health", efa.facts ? health_json(efa.facts->health) : Json(nullptr)}};
}

Json nearness_json(const Nearness& near) {
  return {{"shape", text_or_null(near.shape)},
          {"hops", or_null(near.hops)},
          {"best_hops", or_null(near.best_hops)},
          {"numa_nodes", near.numa_nodes},
          {"nearest_efa_interfaces", or_null(near.near_efas)},
          {"best_nearest_efa_interfaces", or_null(near.best_efas)},
          {"as_near_as_possible", !near.is_worse_than_possible()},
          {"nearer_and_free_now", near.better_now}};
}

}  // namespace

std::string explain_json(const ExplainedPod& pod, const ExplainFacts& facts) {
  Json containers = Json::array();
  for (const ExplainedContainer& container : pod.containers) {
    Json units = Json::array();
    Json devices = Json::array();
    Json efas = Json::array();
    for (const HeldUnits& one : container.units) units.push_back(units_json(one));
    for (const ExplainedDevice& one : container.devices) devices.push_back(device_json(one));
    for (const ExplainedEfa& one : container.efas) efas.push_back(efa_json(one));
    containers.push_back({{"name", container.name},
                          {"units", std::move(units)},
                          {"devices", std::move(devices)},
                          {"efa_interfaces", std::move(efas)},
                          {"nearness", nearness_json(container.nearness)}});
  }
  return dump({{"schema", kExplainSchema},
               {"verdict", has_findings(pod) ? "findings" : "healthy"},
               {"namespace", pod.pod_namespace},
               {"pod", pod.pod},
               {"node",
                {{"instance_type", text_or_null(facts.host.instance_type)},
                 {"instance_id", text_or_null(facts.host.instance_id)}}},
               {"checkpoint_unread", text_or_null(facts.checkpoint_unread)},
               {"containers", std::move(containers)},
               {"other_resources", pod.foreign}});
}

}  // namespace neuron::agent
