#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/grant/grant.h"
#include "agent/grant/node_units.h"
#include "plugin/dra/claim/claim_config.h"
#include "plugin/dra/claim/claim_port.h"
#include "plugin/dra/claim/hardware.h"

// Grants of claims to containers: the same as Allocate's for the same units, by the same code (agent/grant). Pure.
namespace neuron::plugin::dra {

using Environment = std::map<std::string, std::string>;

// Hardware that a claim holds through one of its requests.
struct RequestShare {
  std::string request;  // base name
  Hardware hardware;
  // Admin access: the Neuron nodes, write-only, no interfaces and no variables; it keeps no other claim from the
  // hardware.
  bool admin_access = false;
  RequestConfig config;

  // Whether it gives cores to compute on, and so decides about variables.
  [[nodiscard]] bool computes() const { return !admin_access && !hardware.devices.empty(); }
};

// Facts that variables depend on, beside shares.
struct GrantFacts {
  const grant::NodeUnits& node;
  const grant::GrantOptions& options;
};

// The variables of a container that uses `shares`, of one or more claims: NEURON_RT_VISIBLE_CORES over all of them, as
// the container counts the devices that it sees; NEURON_LOGICAL_NC_CONFIG where a share says it, or where
// Allocate would set it (agent/grant/grant.h); those of the UltraServer. Empty when none of the shares computes.
// Errors: invalid_argument when LNC cannot be set on this node or devices of a share; failed_precondition when the
// shares want different values, or a logical core would be half theirs.
[[nodiscard]] Result<Environment> environment_of(const GrantFacts& facts,
                                                 const std::vector<const RequestShare*>& shares);

// A device of the pool that a claim was given, for one or more of its requests.
struct GrantedDevice {
  std::vector<std::string> requests;  // base names, each once
  std::string pool;
  std::string device;  // as in the slice
  std::optional<std::string> share_id;
  Hardware hardware;
  bool admin_access = false;
};

// The claim's CDI file, and the answer to the kubelet.
struct ClaimGrant {
  std::string cdi_text;  // "" = the claim gives nothing that a file could say
  std::vector<PreparedDevice> devices;
};

// CDI devices (agent/core/claim_cdi.h): "<uid>-<device>" with the nodes of each device, "<uid>-admin-<device>" with its
// Neuron nodes, write-only, where it is for admin access, and "<uid>-request-<request>" with the variables of each
// request that has some. The kubelet gets the latter once, as the last id of the request's last device: the first id of
// a device is what it shows in the pod's status. `devices` in the order of the results; `environments` by base name of
// the request.
[[nodiscard]] ClaimGrant grant_of_claim(const GrantFacts& facts, const std::string& driver, const std::string& uid,
                                        const std::vector<GrantedDevice>& devices,
                                        const std::map<std::string, Environment>& environments);

// The device nodes of a CDI device, and how they may be opened: "rw", or "w" for admin access. Of an interface whose
// verbs node is not known now there is none.
struct GrantedNodes {
  std::vector<grant::Grant::DeviceNode> nodes;
  std::string permissions;
};
[[nodiscard]] GrantedNodes nodes_of(const GrantFacts& facts, const Hardware& hardware, bool admin_access);

}  // namespace neuron::plugin::dra
