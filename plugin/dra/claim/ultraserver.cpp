#include "plugin/dra/claim/ultraserver.h"

#include <algorithm>
#include <vector>

#include "agent/core/ultraserver.h"

namespace neuron::plugin::dra {
namespace {

// Modes of the driver: the first that the node can do counts. Alone it can always work.
std::vector<int> modes_of(int nodes) {
  if (nodes == 4) return {1};     // X4
  if (nodes == 2) return {3, 2};  // X2V, X2H
  return {4};                     // X1
}

std::map<std::string, std::string> variables(int mode, const std::string& server_id, int node_id) {
  return {{"NEURON_RT_ULTRASERVER_MODE", std::to_string(mode)},
          {"NEURON_RT_ULTRASERVER_SERVER_ID", server_id},
          {"NEURON_RT_ULTRASERVER_NODE_ID", std::to_string(node_id)}};
}

Error cannot(int nodes, const std::string& why) {
  return make_error(ErrorCode::failed_precondition, "error applying config: ultraserverMode " + std::to_string(nodes) +
                                                        " is not possible on this node: " + why +
                                                        "; request a node of an UltraServer of that size, or mode 1");
}

std::string shown(const std::vector<int>& modes) {
  std::string text;
  for (const int mode : modes) text += (text.empty() ? "" : ",") + std::to_string(mode);
  return text;
}

// The place of this node among `nodes`; nullptr when it has none.
const model::UltraServer::Membership* place_among(const model::UltraServer& server, int nodes) {
  const auto found = std::find_if(server.memberships.begin(), server.memberships.end(), [&](const auto& membership) {
    const bool is_part = server.partition_nodes && membership.nodes > nodes;
    return membership.nodes == nodes || membership.nodes == 0 || is_part;
  });
  return found == server.memberships.end() ? nullptr : &*found;
}

}  // namespace

Result<std::map<std::string, std::string>> ultraserver_environment(const model::HostScan& host, int nodes) {
  const std::vector<int> wanted = modes_of(nodes);
  // Where a file is missing AWS's own script takes these.
  if (nodes == 1) return variables(wanted[0], "0000000000000000", -1);
  if (!host.ultraserver) return fail(cannot(nodes, "its driver has no sys/class/neuron_device/ultraserver_mode"));
  const model::UltraServer& server = *host.ultraserver;
  const core::Election election = core::election_of(host);
  if (server.busy) {
    const std::string then = election.action.empty() ? "retried automatically" : election.action;
    return fail(ErrorCode::unavailable, election.sentence + "; " + then);
  }
  const auto mode = std::find_if(wanted.begin(), wanted.end(), [&](int one) {
    return std::find(server.modes.begin(), server.modes.end(), one) != server.modes.end();
  });
  if (mode == wanted.end()) {
    const bool alone = election.phase == core::Election::Phase::alone;
    return fail(cannot(nodes, "ultraserver_mode is \"" + shown(server.modes) + "\"" +
                                  (alone ? ", since its election found no other server" : "")));
  }
  if (const auto* place = place_among(server, nodes)) return variables(*mode, place->server_id, place->node_id);
  const std::string size = std::to_string(nodes);
  return fail(cannot(nodes, "it is not linked with another node (server_id_" + size + ", node_id_" + size + ")"));
}

}  // namespace neuron::plugin::dra
