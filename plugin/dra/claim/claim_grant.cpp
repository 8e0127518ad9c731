#include "plugin/dra/claim/claim_grant.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/ultraserver.h"
#include "agent/model/snapshot.h"
#include "plugin/dra/claim/claim_record.h"

namespace neuron::plugin::dra {
namespace {

// A part of a partition gets the ids of the whole, as AWS's script gives them: the driver maps them to the part itself.
Result<Environment> ultraserver_environment(const model::HostScan& host, int nodes) {
  const auto variables = [](int mode, const std::string& server_id, int node_id) {
    return Environment{{"NEURON_RT_ULTRASERVER_MODE", std::to_string(mode)},
                       {"NEURON_RT_ULTRASERVER_SERVER_ID", server_id},
                       {"NEURON_RT_ULTRASERVER_NODE_ID", std::to_string(node_id)}};
  };
  const auto cannot = [&](const std::string& why) {
    return fail(ErrorCode::failed_precondition, RefusalReason::ultraserver,
                "error applying config: ultraserverMode " + std::to_string(nodes) + " is not possible on this node: " +
                    why + "; request a node of an UltraServer of that size, or mode 1");
  };
  // X1, which every node can do. Where a file is missing AWS's own script takes these.
  if (nodes == 1) return variables(4, "0000000000000000", -1);
  // Modes of the driver, the first that the node can do counts: X4, or X2V and X2H.
  const std::vector<int> wanted = nodes == 4 ? std::vector{1} : std::vector{3, 2};
  if (host.ultraserver_is_unread) {
    return fail(ErrorCode::unavailable, RefusalReason::ultraserver,
                "the node's UltraServer files in sys/class/neuron_device cannot be read; retried automatically");
  }
  if (!host.ultraserver) return cannot("its driver has no sys/class/neuron_device/ultraserver_mode");
  const model::UltraServer& server = *host.ultraserver;
  const core::Election election = core::election_of(host);
  if (server.busy) {
    const std::string then = election.action.empty() ? "retried automatically" : election.action;
    return fail(ErrorCode::unavailable, RefusalReason::ultraserver, election.sentence + "; " + then);
  }
  const auto mode = std::ranges::find_first_of(wanted, server.modes);
  if (mode == wanted.end()) {
    std::string modes;
    for (const int one : server.modes) modes += (modes.empty() ? "" : ",") + std::to_string(one);
    const bool is_alone = election.phase == core::Election::Phase::alone;
    return cannot("ultraserver_mode is \"" + modes + "\"" +
                  (is_alone ? ", since its election found no other server" : ""));
  }
  const auto place = std::ranges::find_if(server.memberships, [&](const auto& one) {
    return one.nodes == nodes || one.nodes == 0 || (server.partition_nodes && one.nodes > nodes);
  });
  if (place != server.memberships.end()) return variables(*mode, place->server_id, place->node_id);
  const std::string size = std::to_string(nodes);
  return cannot("it is not linked with another node (server_id_" + size + ", node_id_" + size + ")");
}

Error clash(const std::string& what, const std::string& one, int one_value, const std::string& other, int other_value) {
  return make_error(ErrorCode::failed_precondition, RefusalReason::request_clash,
                    "one container uses the requests \"" + one + "\" with " + what + " " + std::to_string(one_value) +
                        " and \"" + other + "\" with " + std::to_string(other_value) +
                        ", but has one runtime; use the same configuration for both");
}

// LNC is chosen on Trainium2 and Trainium3 only. AWS's words.
Result<void> check_lnc(const grant::NodeUnits& node, const PlannedRequest& planned) {
  if (!planned.config.lnc) return {};
  for (const HeldDevice& held : planned.hardware.devices) {
    const model::NeuronDevice* device = node.device(held.device);
    const auto family = device == nullptr ? std::nullopt : device->family;
    if (family == model::Family::trainium2 || family == model::Family::trainium3) continue;
    return fail(ErrorCode::invalid_argument, RefusalReason::bad_config,
                "error applying config: LNC value is not configurable for instance type " +
                    printable(node.snapshot().host.instance_type, 64));
  }
  return {};
}

struct ContainerConfig {
  std::optional<int> lnc;    // that of all, the node's without a configuration
  bool is_lnc_set = false;   // by the configuration of some request
  std::optional<int> nodes;  // UltraServer
};

// The one configuration that a container's requests have in common.
Result<ContainerConfig> config_of(const grant::NodeUnits& node, const std::vector<const PlannedRequest*>& computing) {
  const auto& host_lnc = node.snapshot().host.lnc;
  const std::optional<int> node_lnc = host_lnc ? std::optional(host_lnc->value) : std::nullopt;
  const auto lnc_of = [&](const PlannedRequest& planned) { return planned.config.lnc ? planned.config.lnc : node_lnc; };
  const PlannedRequest& first = *computing.front();
  ContainerConfig config{lnc_of(first), false, {}};
  const PlannedRequest* with_nodes = nullptr;
  for (const PlannedRequest* planned : computing) {
    TRY(check_lnc(node, *planned));
    if (lnc_of(*planned) != config.lnc) {
      return fail(
          clash("logicalNeuronCore", first.name, config.lnc.value_or(0), planned->name, lnc_of(*planned).value_or(0)));
    }
    config.is_lnc_set |= planned->config.lnc.has_value();
    if (!planned->config.ultraserver_mode) continue;
    if (with_nodes != nullptr && config.nodes != planned->config.ultraserver_mode) {
      return fail(
          clash("ultraserverMode", with_nodes->name, *config.nodes, planned->name, *planned->config.ultraserver_mode));
    }
    with_nodes = planned;
    config.nodes = planned->config.ultraserver_mode;
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
      return fail(ErrorCode::not_found, RefusalReason::unknown_device,
                  "neuron" + std::to_string(held.device) + " is no longer on this node");
    }
    const std::vector<int> all = node.cores_of(model::Resource::neuron, held.device);
    if (held.places.empty()) cores.insert(cores.end(), all.begin(), all.end());
    std::map<int, int> places_of_core;  // position of the logical core -> how many of its places are held
    for (const int place : held.places) ++places_of_core[lnc ? place / lnc->value : place];
    for (const auto& [position, count] : places_of_core) {
      if (static_cast<std::size_t>(position) >= all.size() || (lnc && count != lnc->value)) {
        return fail(ErrorCode::failed_precondition, RefusalReason::lnc_clash,
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

bool uses(const UsedRequests& used, const std::string& request) {
  return used.empty() || used.contains(request);
}

std::string shown(const Environment& environment) {
  std::string text;
  for (const auto& [name, value] : environment) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text.empty() ? "no variables" : text;
}

Result<void> check_unread(const ClaimUse& use) {
  if (use.unread.empty()) return {};
  std::ptrdiff_t computing = 0;
  for (const auto& [name, claim] : use.claims) {
    computing += std::ranges::count_if(claim.requests, std::mem_fn(&PlannedRequest::computes));
  }
  if (computing <= 1) return {};
  return fail(ErrorCode::failed_precondition, RefusalReason::pods_unread,
              "the variables of " + std::to_string(computing) +
                  " requests depend on which containers use them, which could not be read: " + use.unread +
                  "; or put all Neuron devices of a pod in one request");
}

// The requests of all known claims that one container uses. Errors: one of these claims cannot be prepared; a value
// that leaves out what it gives would be wrong as soon as it is prepared.
Result<std::vector<const PlannedRequest*>> requests_of(const ClaimUse& use, const ContainerUse& container) {
  std::vector<const PlannedRequest*> requests;
  for (const auto& [claim, used] : container.claims) {
    const auto known = use.claims.find(claim);
    if (known == use.claims.end()) continue;  // of another driver, or of a pod whose turn has not come
    if (!known->second.error.empty()) {
      return fail(
          ErrorCode::failed_precondition, RefusalReason::other_claim,
          container.name + " uses the claim \"" + claim + "\" as well, which is not prepared: " + known->second.error);
    }
    for (const PlannedRequest& planned : known->second.requests) {
      if (uses(used, planned.name)) requests.push_back(&planned);
    }
  }
  return requests;
}

// The variables that a container needs have to equal those in the files of claims that are prepared already.
Result<void> check_prepared(const ClaimUse& use, const ContainerUse& container, const Environment& needed) {
  for (const auto& [claim, used] : container.claims) {
    const auto known = use.claims.find(claim);
    if (known == use.claims.end() || !known->second.prepared) continue;
    for (const auto& [request, environment] : *known->second.prepared) {
      if (!uses(used, request) || environment == needed) continue;
      return fail(ErrorCode::failed_precondition, RefusalReason::request_clash,
                  container.name + " uses the claim \"" + claim + "\" together with others and needs " + shown(needed) +
                      ", but that claim is already prepared, with " + shown(environment) +
                      ", for containers that use it differently; use all of its requests in the same containers, or "
                      "combine the requests in one claim");
    }
  }
  return {};
}

struct Value {
  Environment environment;
  std::string container;  // the first that uses it
};

// Adds the value that `container` needs for each request of the claim that it uses.
Result<void> add_values(const KnownClaim& claim, const UsedRequests& used, const std::string& container,
                        const Environment& needed, std::map<std::string, Value>& values) {
  for (const PlannedRequest& planned : claim.requests) {
    if (!planned.computes() || !uses(used, planned.name)) continue;
    const auto [value, is_new] = values.try_emplace(planned.name, Value{needed, container});
    const auto& [environment, first] = value->second;
    if (is_new || environment == needed) continue;
    return fail(ErrorCode::failed_precondition, RefusalReason::request_clash,
                "the request \"" + planned.name + "\" is used by " + first + ", which needs " + shown(environment) +
                    ", and by " + container + ", which needs " + shown(needed) +
                    ", since they use different requests beside it; containers must share all of their Neuron requests "
                    "or none");
  }
  return {};
}

}  // namespace

Result<Environment> environment_of(const GrantFacts& facts, const std::vector<const PlannedRequest*>& requests) {
  std::vector<const PlannedRequest*> computing;
  Hardware seen, own;
  for (const PlannedRequest* planned : requests) {
    seen.add(planned->hardware);
    if (!planned->computes()) continue;
    own.add(planned->hardware);
    computing.push_back(planned);
  }
  if (computing.empty()) return Environment{};
  TRY_ASSIGN(const ContainerConfig config, config_of(facts.node, computing));
  const auto& host_lnc = facts.node.snapshot().host.lnc;
  std::shared_ptr<const grant::NodeUnits> other;
  if (config.lnc && (!host_lnc || host_lnc->value != *config.lnc)) other = node_with(facts.node, *config.lnc);
  const grant::NodeUnits& node = other ? *other : facts.node;
  TRY_ASSIGN(const std::vector<int> cores, core_ids(node, own));
  std::vector<int> devices;
  for (const HeldDevice& held : seen.devices) devices.push_back(held.device);
  Environment environment = grant::grant_of_cores(node, devices, cores, facts.options).envs;
  if (config.is_lnc_set) environment[grant::kLncVariable] = std::to_string(*config.lnc);
  if (config.nodes) {
    TRY_ASSIGN(Environment more, ultraserver_environment(facts.node.snapshot().host, *config.nodes));
    environment.merge(more);
  }
  return environment;
}

KnownClaim known_of(const ClaimRecord& record) {
  KnownClaim known;
  known.prepared.emplace();
  if (!record.is_whole()) {
    known.error =
        "only its CDI file is left, which does not record what its containers hold; restart the kubelet on this node, "
        "or recreate the pods, to prepare the claim again";
  }
  for (const RecordedRequest& request : record.requests) {
    known.requests.push_back(request.planned);
    if (request.planned.computes()) (*known.prepared)[request.planned.name] = request.environment;
  }
  return known;
}

Result<std::map<std::string, Environment>> environments_of(const GrantFacts& facts, const std::string& name,
                                                           const ClaimUse& use) {
  TRY(check_unread(use));
  const KnownClaim& claim = use.claims.at(name);
  std::map<std::string, Value> values;
  for (const ContainerUse& container : use.containers) {
    const auto used = container.claims.find(name);
    if (used == container.claims.end()) continue;
    TRY_ASSIGN(const auto requests, requests_of(use, container));
    auto needed = environment_of(facts, requests);
    if (!needed) return fail(std::move(needed).error().with_context(container.name));
    TRY(check_prepared(use, container, *needed));
    TRY(add_values(claim, used->second, container.name, *needed, values));
  }
  std::map<std::string, Environment> environments;
  for (const PlannedRequest& planned : claim.requests) {
    if (!planned.computes()) continue;
    const auto value = values.find(planned.name);
    if (value != values.end()) {
      environments[planned.name] = std::move(value->second.environment);
    } else {
      TRY_ASSIGN(environments[planned.name], environment_of(facts, {&planned}));
    }
  }
  return environments;
}

}  // namespace neuron::plugin::dra
