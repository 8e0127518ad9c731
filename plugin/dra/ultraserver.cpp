#include "plugin/dra/ultraserver.h"

#include <algorithm>
#include <vector>

#include "agent/base/parse.h"

namespace neuron::plugin::dra {
namespace {

constexpr std::string_view kNoServer = "0000000000000000";
constexpr std::string_view kFolder = "sys/class/neuron_device/";

// Modes of the driver: the first that the node can do counts. Alone it can always work.
std::vector<std::string> modes_of(int nodes) {
  if (nodes == 4) return {"1"};       // X4
  if (nodes == 2) return {"3", "2"};  // X2V, X2H
  return {"4"};                       // X1
}

std::string text_for(const std::map<int, std::string>& texts, int nodes) {
  const auto found = texts.find(nodes);
  return found == texts.end() ? "" : found->second;
}

Error cannot(int nodes, const std::string& file, const std::string& says) {
  return make_error(ErrorCode::failed_precondition,
                    "error applying config: ultraserverMode " + std::to_string(nodes) +
                        " is not possible on this node: " + std::string(kFolder) + file + " says \"" +
                        printable(says, 64) + "\"; ask for a node of an UltraServer of that size, or for mode 1");
}

}  // namespace

Result<std::map<std::string, std::string>> ultraserver_environment(const UltraServerFacts& facts, int nodes) {
  if (facts.modes == "busy") {
    return fail(ErrorCode::unavailable, "this UltraServer is still being put together: " + std::string(kFolder) +
                                            "ultraserver_mode says \"busy\"; it is tried again");
  }
  const std::vector<std::string> wanted = modes_of(nodes);
  if (nodes == 1) {
    return std::map<std::string, std::string>{{"NEURON_RT_ULTRASERVER_MODE", wanted[0]},
                                              {"NEURON_RT_ULTRASERVER_SERVER_ID", std::string(kNoServer)},
                                              {"NEURON_RT_ULTRASERVER_NODE_ID", "-1"}};
  }
  const auto possible = split(facts.modes, ',');
  const auto mode = std::find_if(wanted.begin(), wanted.end(), [&](const std::string& one) {
    return std::find(possible.begin(), possible.end(), one) != possible.end();
  });
  if (mode == wanted.end()) return fail(cannot(nodes, "ultraserver_mode", facts.modes));
  const std::string server = text_for(facts.server_id, nodes);
  const std::string node = text_for(facts.node_id, nodes);
  const bool is_hex =
      server.size() == kNoServer.size() && server.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  const std::string suffix = "_" + std::to_string(nodes);
  if (!is_hex || server == kNoServer) return fail(cannot(nodes, "server_id" + suffix, server));
  if (!parse_int(node, 0, nodes - 1)) return fail(cannot(nodes, "node_id" + suffix, node));
  return std::map<std::string, std::string>{{"NEURON_RT_ULTRASERVER_MODE", *mode},
                                            {"NEURON_RT_ULTRASERVER_SERVER_ID", server},
                                            {"NEURON_RT_ULTRASERVER_NODE_ID", node}};
}

}  // namespace neuron::plugin::dra
