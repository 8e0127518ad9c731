#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/pod_use.h"
#include "plugin/dra/claim/prepared_claim.h"

// The variables of a claim's requests, when containers use several of them (docs/reference/dra.md#cdi-files-of-claims).
// A container sees the CDI devices of all requests that it uses, in any order, and equal variables overwrite each
// other: so each request has to carry the value that is right for the container, and all containers that use it need
// the same one. Pure.
namespace neuron::plugin::dra {

// A claim of the pod's namespace whose allocation is known here.
struct KnownClaim {
  std::vector<RequestShare> shares;
  // Of a claim that is prepared already, by request: its file stays as it is. nullopt: it is being prepared.
  std::optional<std::map<std::string, Environment>> prepared;
  std::string error{};  // why it cannot be prepared; "" = it can, so far. Its grant is unknown then
};

// Of a claim that was rebuilt of its CDI file it is not known what its containers have: it has an error.
[[nodiscard]] KnownClaim known_of(const PreparedClaim& claim);

struct ContainerOfPod {
  std::string name;  // "pod/container", for messages
  std::map<std::string, UsedRequests> claims;
};

struct ClaimUse {
  std::map<std::string, KnownClaim> claims;  // by name
  std::vector<ContainerOfPod> containers;    // of all pods that may use the claim and could be read
  std::string unread;                        // why not all could be read; "" when all were, and there is one
};

// By request of the claim `name`, which is in `use.claims`: those that compute. A request that no container uses gets
// what a container using it alone would.
// Errors: those of environment_of(); failed_precondition, naming the containers, where no value is right, as where a
// claim that one of them uses as well cannot be prepared; and where pods could not be read though the known claims,
// those that are prepared already too, have more than one request that computes.
[[nodiscard]] Result<std::map<std::string, Environment>> environments_of(const GrantFacts& facts,
                                                                         const std::string& name, const ClaimUse& use);

}  // namespace neuron::plugin::dra
