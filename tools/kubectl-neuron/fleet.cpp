#include "tools/kubectl-neuron/fleet.h"

#include <algorithm>
#include <tuple>

namespace neuron::fleet {
namespace {

void add(Amounts& amounts, const Amounts& more) {
  for (const auto& [name, amount] : more) amounts[name] += amount;
}

void raise_to(Amounts& amounts, const Amounts& others) {
  for (const auto& [name, amount] : others) amounts[name] = std::max(amounts[name], amount);
}

// The first of a sorted list that is not before `key`, if it has that key.
template <typename List, typename Key, typename KeyOf>
auto find_sorted(const List& list, const Key& key, const KeyOf& key_of) -> decltype(&list.front()) {
  const auto found = std::ranges::lower_bound(list, key, {}, key_of);
  return found == list.end() || key_of(*found) != key ? nullptr : &*found;
}

}  // namespace

Amounts scheduled_amounts(const Pod& pod) {
  if (has_ended(pod)) return {};
  Amounts running;   // containers and sidecars
  Amounts sidecars;  // those begun so far
  Amounts most;      // of an init container, beside the sidecars before it
  for (const Container& container : pod.containers) {
    if (!container.init) add(running, container.requests);
    if (container.sidecar) add(running, container.requests);
  }
  for (const Container& container : pod.containers) {
    if (!container.init) continue;
    Amounts now = sidecars;
    add(now, container.requests);
    raise_to(most, now);
    if (container.sidecar) sidecars = std::move(now);
  }
  raise_to(running, most);
  return running;
}

bool has_ended(const Pod& pod) {
  return pod.phase == "Succeeded" || pod.phase == "Failed";
}

bool asks_for_hardware(const Pod& pod) {
  const auto has_requests = [](const Container& container) { return !container.requests.empty(); };
  return !pod.claims.empty() || std::ranges::any_of(pod.containers, has_requests);
}

bool is_neuron_pool(const Pool& pool) {
  return std::ranges::any_of(pool.devices, [](const SliceDevice& device) {
    const auto type = device.attributes.find("resourceType");
    if (type == device.attributes.end() || !type->second.text) return false;
    return type->second.text->starts_with("neuron_") || *type->second.text == "efa";
  });
}

const Node* find_node(const Fleet& fleet, const std::string& name) {
  return find_sorted(fleet.nodes, name, [](const Node& node) -> const std::string& { return node.name; });
}

const Pod* find_pod(const Fleet& fleet, const std::string& pod_namespace, const std::string& name) {
  return find_sorted(fleet.pods, std::tie(pod_namespace, name),
                     [](const Pod& pod) { return std::tie(pod.pod_namespace, pod.name); });
}

const Claim* find_claim(const Fleet& fleet, const std::string& claim_namespace, const std::string& name) {
  return find_sorted(fleet.claims, std::tie(claim_namespace, name),
                     [](const Claim& claim) { return std::tie(claim.claim_namespace, claim.name); });
}

}  // namespace neuron::fleet
