#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/grant/node_units.h"
#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/claim/claim_record.h"
#include "plugin/dra/claim/claim_request.h"

namespace neuron::plugin::dra {

// The text of a claim's CDI file, and the answer to the kubelet.
struct ClaimGrant {
  std::string cdi_text;  // "" = the claim gives nothing that a file could contain
  std::vector<PreparedDevice> devices;
};

// CDI devices (agent/core/claim_cdi.h): "<uid>-<device>" with the nodes of each device, "<uid>-admin-<device>" with its
// Neuron nodes, write-only, where it is for admin access, and "<uid>-request-<request>" with the variables of each
// request that has some. The answer has the latter once, as the last id of the request's last device: the first id of a
// device is what the kubelet shows in the pod's status. `devices` in the order of the results; `environments` by base
// name of the request. Pure.
[[nodiscard]] ClaimGrant grant_of_claim(const GrantFacts& facts, const std::string& driver, const std::string& uid,
                                        const std::vector<PlannedDevice>& devices,
                                        const std::map<std::string, Environment>& environments);

// The text of a claim's CDI file as it should be now, from the text as it was when the claim was prepared: the numbers
// of verbs nodes are those of `facts`, since they change when a driver is bound anew, and permissions those of today.
// An interface that is away keeps its node, unless that is another one's by now: then it is left out, so that a
// container that is started again fails instead of getting the other interface. Any other text stays as it is. "":
// nothing is left of it. Pure.
[[nodiscard]] std::string newest_cdi_text(const std::string& prepared, const std::string& uid, const GrantFacts& facts);

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

  // Uids of the files that are there, ascending, and removes those that a crash left half-written.
  [[nodiscard]] std::vector<std::string> uids();

  // Whether its file is there and whole.
  [[nodiscard]] bool has(const std::string& uid) const;

  // The records of the claims of the files, without names and requests. Without `node`, a core counts as its whole
  // device.
  [[nodiscard]] std::vector<ClaimRecord> rebuild(const grant::NodeUnits* node);

 private:
  [[nodiscard]] std::string path_of(const std::string& uid) const;

  const std::string directory_;
  const std::string prefix_;  // "k8s.<driver>-claim_"
};

}  // namespace neuron::plugin::dra
