#include "plugin/dra/ultraserver.h"

#include <algorithm>
#include <vector>

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
  return make_error(ErrorCode::failed_precondition,
                    "error applying config: ultraserverMode " + std::to_string(nodes) +
                        " is not possible on this node: " + why +
                        "; ask for a node of an UltraServer of that size, or for mode 1");
}

std::string shown(const std::vector<int>& modes) {
  std::string text;
  for (const int mode : modes) text += (text.empty() ? "" : ",") + std::to_string(mode);
  return text;
}

}  // namespace

Result<std::map<std::string, std::string>> ultraserver_environment(const std::optional<model::UltraServer>& node,
                                                                   int nodes) {
  const std::vector<int> wanted = modes_of(nodes);
  // Where a file is missing AWS's own script takes these.
  if (nodes == 1) return variables(wanted[0], "0000000000000000", -1);
  if (!node) return fail(cannot(nodes, "its driver has no sys/class/neuron_device/ultraserver_mode"));
  if (node->busy) {
    return fail(ErrorCode::unavailable,
                "the nodes of this UltraServer are still finding each other (ultraserver_mode: busy); this is tried "
                "again");
  }
  const auto mode = std::find_if(wanted.begin(), wanted.end(), [&](int one) {
    return std::find(node->modes.begin(), node->modes.end(), one) != node->modes.end();
  });
  if (mode == wanted.end()) return fail(cannot(nodes, "ultraserver_mode is \"" + shown(node->modes) + "\""));
  for (const auto& membership : node->memberships) {
    if (membership.nodes == nodes || membership.nodes == 0) {
      return variables(*mode, membership.server_id, membership.node_id);
    }
  }
  return fail(cannot(nodes, "it is linked with nobody (server_id_" + std::to_string(nodes) + ", node_id_" +
                                std::to_string(nodes) + ")"));
}

}  // namespace neuron::plugin::dra
