#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/grant/grant.h"
#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/claim/claim_request.h"

// The variables and device nodes that claims give containers: what Allocate gives for the same units, by the same code
// (agent/grant); and the CDI files that hold them (claim_cdi_files.cpp).
// A container sees the CDI devices of all requests that it uses, in any order, and equal variables overwrite each
// other: so each request has to carry the value that is right for the container, and all containers that use it need
// the same one (docs/reference/dra.md#cdi-files-of-claims). Functions are pure.
namespace neuron::plugin::dra {

// Facts that variables and device nodes depend on, beside the requests.
struct GrantFacts {
  const grant::NodeUnits& node;
  const grant::GrantOptions& options;
};

// The variables of a container that uses `requests`, of one or more claims: NEURON_RT_VISIBLE_CORES over all of them,
// as the container counts the devices that it sees; NEURON_LOGICAL_NC_CONFIG where a request configures it, or where
// Allocate would set it (agent/grant/grant.h); those of the UltraServer
// (docs/reference/kubernetes-stack.md#ultraservers), but for NEURON_GLOBAL_TOPOID and NEURON_GLOBAL_TOPOID0_HOST, which
// depend on the other nodes: the workload has to set them. Empty when none of the requests computes. Errors:
// invalid_argument when LNC cannot be set on this node or devices of a request; failed_precondition when the requests
// want different values, a logical core would be half theirs, or the node is not in an UltraServer of the configured
// size; unavailable while its election has not ended, naming the devices that keep it from beginning.
[[nodiscard]] Result<Environment> environment_of(const GrantFacts& facts,
                                                 const std::vector<const PlannedRequest*>& requests);

// A claim of the pod's namespace whose allocation is known here.
struct KnownClaim {
  std::vector<PlannedRequest> requests;
  // The environment of a claim that is prepared already, by request: its file stays as it is. nullopt: it is being
  // prepared.
  std::optional<std::map<std::string, Environment>> prepared;
  std::string error{};  // why it cannot be prepared; "" = it can, so far. Its grant is unknown then
};

// A claim that was rebuilt from its CDI file has an error, as it is not known what its containers have.
[[nodiscard]] KnownClaim known_of(const ClaimRecord& record);

struct ClaimUse {
  std::map<std::string, KnownClaim> claims;  // by name
  std::vector<ContainerUse> containers;      // "pod/container" of all pods that may use the claim and could be read
  std::string unread;                        // why not all could be read; "" when all were, and there is one
};

// By request of the claim `name`, which is in `use.claims`: those that compute. A request that no container uses gets
// what a container using it alone would.
// Errors: those of environment_of(); failed_precondition, naming the containers, where no value is right, as where a
// claim that one of them uses as well cannot be prepared; and where pods could not be read though the known claims,
// those that are prepared already too, have more than one request that computes.
[[nodiscard]] Result<std::map<std::string, Environment>> environments_of(const GrantFacts& facts,
                                                                         const std::string& name, const ClaimUse& use);

// The text of a claim's CDI file, and the answer to the kubelet.
struct ClaimGrant {
  std::string cdi_text;  // "" = the claim gives nothing that a file could contain
  std::vector<PreparedDevice> devices;
};

// CDI devices (agent/core/hardware.h): "<uid>-<device or share>" with the nodes of each device, "<uid>-admin-<device>"
// with its Neuron nodes, write-only, where it is for admin access, and "<uid>-request-<request>" with the variables of
// each request that has some. The answer has the latter once, as the last id of the request's last device: the first id
// of a device is what the kubelet shows in the pod's status. `devices` in the order of the results; `environments` by
// base name of the request. Pure.
[[nodiscard]] ClaimGrant grant_of_claim(const GrantFacts& facts, const std::string& driver, const std::string& uid,
                                        const std::vector<PlannedDevice>& devices,
                                        const std::map<std::string, Environment>& environments);

// The text of a claim's CDI file as it should be now, from the text as it was when the claim was prepared: the numbers
// of verbs nodes are those of `facts`, since they change when a driver is rebound, and permissions those of today.
// An interface that is away keeps its node, unless that is another one's by now: then it is left out, so that a
// container that is started again fails instead of getting the other interface. Requests whose cores are numbered by
// another LNC, `node_lnc`, than a runtime would read now get that as NEURON_LOGICAL_NC_CONFIG. Any other text stays as
// it is. "": nothing is left of it. Pure.
[[nodiscard]] std::string newest_cdi_text(const std::string& prepared, const std::string& uid, const GrantFacts& facts,
                                          std::optional<int> node_lnc = std::nullopt);

// The CDI files of claims: k8s.<driver>-claim_<uid>.json in the runtime's directory, one for each claim. Runtimes read
// a file again only when they miss a name, so names hold the uid and are never used again. Not synchronised:
// callers hold the lock of LockedRecordFile. Every method blocks on files; errors are from errno, naming the path.
class ClaimCdiFiles {
 public:
  ClaimCdiFiles(std::string directory, const std::string& driver);

  // The file has the content `text` afterwards; with an empty one it is removed. Makes the directory if it is missing.
  [[nodiscard]] Result<void> write(const std::string& uid, const std::string& text);
  [[nodiscard]] Result<void> remove(const std::string& uid) { return write(uid, ""); }

  // The directory was removed on the host, and the mount here keeps the old one, in which no file can be created.
  [[nodiscard]] bool is_dead() const;

  // Uids of the files that are there, ascending, and removes those that a crash left half-written. Errors: from errno;
  // a directory that is missing has none.
  [[nodiscard]] Result<std::vector<std::string>> uids();

  // Whether its file is there and whole.
  [[nodiscard]] bool has(const std::string& uid) const;

  // The records of the claims of the files, without names and requests. Without `node`, a core counts as its whole
  // device. Errors: from errno, as then a claim would be forgotten.
  [[nodiscard]] Result<std::vector<ClaimRecord>> rebuild(const grant::NodeUnits* node);

 private:
  [[nodiscard]] std::string path_of(const std::string& uid) const;

  const std::string directory_;
  const std::string prefix_;  // "k8s.<driver>-claim_"
};

}  // namespace neuron::plugin::dra
