#include "plugin/dra/claim/claim_use.h"

#include <algorithm>
#include <utility>

namespace neuron::plugin::dra {
namespace {

bool uses(const UsedRequests& used, const std::string& request) {
  return used.empty() || used.contains(request);
}

std::string shown(const Environment& environment) {
  std::string text;
  for (const auto& [name, value] : environment) text += (text.empty() ? "" : " ") + name + "=" + value;
  return text.empty() ? "no variables" : text;
}

// Which requests of all known claims one container uses.
std::vector<const RequestShare*> shares_of(const ClaimUse& use, const ContainerOfPod& container) {
  std::vector<const RequestShare*> shares;
  for (const auto& [claim, used] : container.claims) {
    const auto known = use.claims.find(claim);
    if (known == use.claims.end()) continue;  // of another driver, or of a pod whose turn has not come
    for (const RequestShare& share : known->second.shares) {
      if (uses(used, share.request)) shares.push_back(&share);
    }
  }
  return shares;
}

Result<void> check_unread(const ClaimUse& use) {
  if (use.unread.empty()) return {};
  int computing = 0;
  for (const auto& [name, claim] : use.claims) {
    for (const RequestShare& share : claim.shares) computing += share.computes() ? 1 : 0;
  }
  if (computing <= 1) return {};
  return fail(ErrorCode::failed_precondition,
              "the variables of " + std::to_string(computing) +
                  " requests depend on which containers use them, which could not be read: " + use.unread +
                  "; or put all Neuron devices of a pod in one request");
}

// A value that leaves out what another claim gives would be wrong as soon as that is there.
Result<void> check_others(const ClaimUse& use, const ContainerOfPod& container) {
  for (const auto& [claim, used] : container.claims) {
    const auto known = use.claims.find(claim);
    if (known == use.claims.end() || known->second.error.empty()) continue;
    return fail(ErrorCode::failed_precondition, container.name + " uses the claim \"" + claim +
                                                    "\" as well, which is not prepared: " + known->second.error);
  }
  return {};
}

// The variables that a container needs have to equal those in the files of claims prepared before.
Result<void> check_prepared(const ClaimUse& use, const ContainerOfPod& container, const Environment& needed) {
  for (const auto& [claim, used] : container.claims) {
    const auto known = use.claims.find(claim);
    if (known == use.claims.end() || !known->second.prepared) continue;
    for (const auto& [request, environment] : *known->second.prepared) {
      if (!uses(used, request) || environment == needed) continue;
      return fail(ErrorCode::failed_precondition,
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

Error no_value(const std::string& request, const Value& first, const std::string& container,
               const Environment& needed) {
  return make_error(
      ErrorCode::failed_precondition,
      "the request \"" + request + "\" is used by " + first.container + ", which needs " + shown(first.environment) +
          ", and by " + container + ", which needs " + shown(needed) +
          ", since they use different requests beside it; containers must share all of their Neuron requests or none");
}

// Notes the value that `container` needs for each request of the claim that it uses.
Result<void> note(const KnownClaim& claim, const UsedRequests& used, const std::string& container,
                  const Environment& needed, std::map<std::string, Value>& values) {
  for (const RequestShare& share : claim.shares) {
    if (!share.computes() || !uses(used, share.request)) continue;
    const auto [value, is_new] = values.try_emplace(share.request, Value{needed, container});
    if (is_new || value->second.environment == needed) continue;
    return fail(no_value(share.request, value->second, container, needed));
  }
  return {};
}

}  // namespace

KnownClaim known_of(const PreparedClaim& claim) {
  KnownClaim known;
  known.prepared.emplace();
  if (!claim.is_whole()) {
    known.error =
        "only its CDI file is left, which does not record what its containers hold; restart the kubelet on this node, "
        "or recreate the pods, to prepare the claim again";
  }
  for (const PreparedRequest& request : claim.requests) {
    known.shares.push_back(request.share);
    if (request.share.computes()) (*known.prepared)[request.share.request] = request.environment;
  }
  return known;
}

Result<std::map<std::string, Environment>> environments_of(const GrantFacts& facts, const std::string& name,
                                                           const ClaimUse& use) {
  TRY(check_unread(use));
  const KnownClaim& claim = use.claims.at(name);
  std::map<std::string, Value> values;
  for (const ContainerOfPod& container : use.containers) {
    const auto used = container.claims.find(name);
    if (used == container.claims.end()) continue;
    TRY(check_others(use, container));
    auto needed = environment_of(facts, shares_of(use, container));
    if (!needed) return fail(std::move(needed).error().with_context(container.name));
    TRY(check_prepared(use, container, *needed));
    TRY(note(claim, used->second, container.name, *needed, values));
  }
  std::map<std::string, Environment> environments;
  for (const RequestShare& share : claim.shares) {
    if (!share.computes()) continue;
    const auto value = values.find(share.request);
    if (value != values.end()) {
      environments[share.request] = std::move(value->second.environment);
    } else {
      TRY_ASSIGN(environments[share.request], environment_of(facts, {&share}));
    }
  }
  return environments;
}

}  // namespace neuron::plugin::dra
