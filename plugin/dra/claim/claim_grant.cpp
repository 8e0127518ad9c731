#include "plugin/dra/claim/claim_grant.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include "agent/base/parse.h"
#include "agent/core/claim_cdi.h"
#include "agent/grant/cdi.h"
#include "agent/model/snapshot.h"
#include "plugin/dra/claim/ultraserver.h"

namespace neuron::plugin::dra {
namespace {

Error clash(const std::string& what, const std::string& one, int one_value, const std::string& other, int other_value) {
  return make_error(ErrorCode::failed_precondition, "one container uses the requests \"" + one + "\" with " + what +
                                                        " " + std::to_string(one_value) + " and \"" + other +
                                                        "\" with " + std::to_string(other_value) +
                                                        ", but has one runtime; use the same configuration for both");
}

// LNC is chosen on Trainium2 and Trainium3 only. AWS's words.
Result<void> check_lnc(const grant::NodeUnits& node, const RequestShare& share) {
  if (!share.config.lnc) return {};
  for (const HeldDevice& held : share.hardware.devices) {
    const model::NeuronDevice* device = node.device(held.device);
    const auto family = device == nullptr ? std::nullopt : device->family;
    if (family == model::Family::trainium2 || family == model::Family::trainium3) continue;
    return fail(ErrorCode::invalid_argument, "error applying config: LNC value is not configurable for instance type " +
                                                 printable(node.snapshot().host.instance_type, 64));
  }
  return {};
}

struct ContainerConfig {
  std::optional<int> lnc;    // that of all, the node's where none says it
  bool says_lnc = false;     // some share does
  std::optional<int> nodes;  // UltraServer
};

// The one configuration that a container's shares come down to.
Result<ContainerConfig> config_of(const grant::NodeUnits& node, const std::vector<const RequestShare*>& computing) {
  const auto& host_lnc = node.snapshot().host.lnc;
  ContainerConfig config;
  if (host_lnc) config.lnc = host_lnc->value;
  const RequestShare* first = computing.front();
  const auto lnc_of = [&](const RequestShare& share) {
    return share.config.lnc ? share.config.lnc : host_lnc ? std::optional(host_lnc->value) : std::nullopt;
  };
  const RequestShare* with_nodes = nullptr;
  for (const RequestShare* share : computing) {
    TRY(check_lnc(node, *share));
    if (lnc_of(*share) != lnc_of(*first)) {
      return fail(clash("logicalNeuronCore", first->request, lnc_of(*first).value_or(0), share->request,
                        lnc_of(*share).value_or(0)));
    }
    config.lnc = lnc_of(*share);
    config.says_lnc |= share->config.lnc.has_value();
    if (!share->config.ultraserver_mode) continue;
    if (with_nodes != nullptr && config.nodes != share->config.ultraserver_mode) {
      return fail(clash("ultraserverMode", with_nodes->request, *config.nodes, share->request,
                        *share->config.ultraserver_mode));
    }
    with_nodes = share;
    config.nodes = share->config.ultraserver_mode;
  }
  return config;
}

// The node as it is with that LNC.
std::shared_ptr<const grant::NodeUnits> node_with(const grant::NodeUnits& node, int lnc) {
  auto snapshot = std::make_shared<model::Snapshot>(node.snapshot());
  snapshot->host.lnc = model::Sourced<int>{lnc, model::Origin::live};
  return std::make_shared<const grant::NodeUnits>(std::move(snapshot), node);
}

// Global ids of the logical cores that are made of the held places, with the LNC that `node` has.
Result<std::vector<int>> core_ids(const grant::NodeUnits& node, const Hardware& hardware) {
  const auto& lnc = node.snapshot().host.lnc;
  std::vector<int> cores;
  for (const HeldDevice& held : hardware.devices) {
    if (node.device(held.device) == nullptr) {
      return fail(ErrorCode::not_found, "neuron" + std::to_string(held.device) + " is no longer on this node");
    }
    const std::vector<int> all = node.cores_of(model::Resource::neuron, held.device);
    if (held.places.empty()) cores.insert(cores.end(), all.begin(), all.end());
    std::map<int, int> places_of_core;  // position of the logical core -> how many of its places are held
    for (const int place : held.places) ++places_of_core[lnc ? place / lnc->value : place];
    for (const auto& [position, count] : places_of_core) {
      if (static_cast<std::size_t>(position) >= all.size() || (lnc && count != lnc->value)) {
        return fail(ErrorCode::failed_precondition,
                    "with logicalNeuronCore " + std::to_string(lnc ? lnc->value : 1) + " a core of neuron" +
                        std::to_string(held.device) +
                        " would be held only in part; request whole devices, or cores in the node's own numbering");
      }
      cores.push_back(all[static_cast<std::size_t>(position)]);
    }
  }
  std::sort(cores.begin(), cores.end());
  return cores;
}

std::vector<int> indices_of(const Hardware& hardware) {
  std::vector<int> indices;
  for (const HeldDevice& held : hardware.devices) indices.push_back(held.device);
  return indices;
}

}  // namespace

// Admin access may not use the hardware. A Neuron node that is opened write-only answers questions and is not counted
// as used; any other way of opening it attaches the process (docs/reference/driver.md#opening-a-device). A verbs node
// has no such way: its ioctls work however it was opened, so admin access gets none.
GrantedNodes nodes_of(const GrantFacts& facts, const Hardware& hardware, bool admin_access) {
  auto nodes = grant::grant_of_cores(facts.node, indices_of(hardware), {}, facts.options).device_nodes;
  if (admin_access) return {std::move(nodes), "w"};
  std::vector<int> efas;
  for (const std::string& name : hardware.efas) {
    if (const auto unit = facts.node.unit_of(model::Resource::efa, name)) efas.push_back(*unit);
  }
  auto more = grant::grant_of_efas(facts.node, efas, facts.options).device_nodes;
  std::move(more.begin(), more.end(), std::back_inserter(nodes));
  return {std::move(nodes), "rw"};
}

Result<Environment> environment_of(const GrantFacts& facts, const std::vector<const RequestShare*>& shares) {
  std::vector<const RequestShare*> computing;
  Hardware seen, own;
  for (const RequestShare* share : shares) {
    seen.add(share->hardware);
    if (!share->computes()) continue;
    own.add(share->hardware);
    computing.push_back(share);
  }
  if (computing.empty()) return Environment{};
  TRY_ASSIGN(const ContainerConfig config, config_of(facts.node, computing));
  const auto& host_lnc = facts.node.snapshot().host.lnc;
  std::shared_ptr<const grant::NodeUnits> other;
  if (config.lnc && (!host_lnc || host_lnc->value != *config.lnc)) other = node_with(facts.node, *config.lnc);
  const grant::NodeUnits& node = other ? *other : facts.node;
  TRY_ASSIGN(const std::vector<int> cores, core_ids(node, own));
  Environment environment = grant::grant_of_cores(node, indices_of(seen), cores, facts.options).envs;
  if (config.says_lnc) environment[grant::kLncVariable] = std::to_string(*config.lnc);
  if (config.nodes) {
    TRY_ASSIGN(Environment more, ultraserver_environment(facts.node.snapshot().host, *config.nodes));
    environment.merge(more);
  }
  return environment;
}

ClaimGrant grant_of_claim(const GrantFacts& facts, const std::string& driver, const std::string& uid,
                          const std::vector<GrantedDevice>& devices,
                          const std::map<std::string, Environment>& environments) {
  ClaimGrant answer;
  const std::string kind = core::claim_cdi_kind(driver);
  std::vector<grant::CdiDevice> cdi;
  std::map<std::string, std::size_t> last_of_request;
  for (const GrantedDevice& one : devices) {
    PreparedDevice prepared{one.requests, one.pool, one.device, {}, one.share_id};
    GrantedNodes granted = nodes_of(facts, one.hardware, one.admin_access);
    const auto access = one.admin_access ? core::ClaimAccess::admin : core::ClaimAccess::use;
    grant::CdiDevice device{
        core::claim_cdi_name(uid, one.device, access), std::move(granted.nodes), std::move(granted.permissions), {}};
    if (!device.device_nodes.empty()) prepared.cdi_ids.push_back(kind + '=' + device.name);
    for (const std::string& request : one.requests) last_of_request[request] = answer.devices.size();
    cdi.push_back(std::move(device));
    answer.devices.push_back(std::move(prepared));
  }
  for (const auto& [request, environment] : environments) {
    const auto last = last_of_request.find(request);
    if (environment.empty() || last == last_of_request.end()) continue;
    cdi.push_back({uid + "-request-" + request, {}, "rw", environment});
    answer.devices[last->second].cdi_ids.push_back(kind + '=' + cdi.back().name);
  }
  answer.cdi_text = grant::cdi_text(kind, cdi);
  return answer;
}

}  // namespace neuron::plugin::dra
