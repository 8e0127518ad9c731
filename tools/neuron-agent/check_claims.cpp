#include "tools/neuron-agent/check_claims.h"

#include <algorithm>
#include <array>

#include "agent/base/parse.h"
#include "agent/host/preflight_facts.h"
#include "plugin/kubelet/instance_lock.h"
#include "plugin/kubelet/socket_file.h"

namespace neuron::agent {
namespace {

using SocketState = preflight::ClaimFacts::SocketState;

constexpr std::size_t kMostSockets = 64;
constexpr std::size_t kMaxShownName = 120;
// Of AWS's device plugins (docs/reference/kubernetes-stack.md); ours have names of their own.
constexpr std::array<std::string_view, 3> kOtherPlugins = {"aws-efa-device-plugin.sock", "neuron-devplugin.sock",
                                                           "neuroncore-devplugin.sock"};

SocketState state_of(const std::string& path) {
  switch (plugin::socket_state(path)) {
    case plugin::SocketState::listening:
      return SocketState::listening;
    case plugin::SocketState::dead:
      return SocketState::dead;
    default:
      return SocketState::unknown;
  }
}

void add_driver_sockets(const std::string& directory, std::string_view prefix, preflight::ClaimFacts& facts) {
  for (const std::string& name : plugin::sockets_in(directory)) {
    if (!name.starts_with(prefix) || facts.driver_sockets.size() == kMostSockets) continue;
    facts.driver_sockets.push_back(
        {directory + "/" + printable(name, kMaxShownName), state_of(directory + "/" + name)});
  }
}

}  // namespace

preflight::ClaimFacts look_at_claims(const CheckOptions& options, const host::FsRoot& root) {
  const bool looks = root.is_live() || options.kubelet_dir_set;
  preflight::ClaimFacts facts =
      host::gather_claim_facts(root, looks ? options.kubelet_dir : "", options.dra_driver_name, options.cdi_dir);
  facts.asked = options.mode == Mode::dra;
  facts.plugin_asked = options.mode == Mode::device_plugin;
  if (!looks) return facts;
  add_driver_sockets(options.kubelet_dir + "/plugins/" + options.dra_driver_name, "", facts);
  add_driver_sockets(options.kubelet_dir + "/plugins_registry", options.dra_driver_name + "-", facts);
  const std::string plugins = options.kubelet_dir + "/device-plugins";
  if (const auto holder = plugin::lock_holder(plugins)) {
    facts.lock = preflight::ClaimFacts::Lock{holder->mode == plugin::InstanceLock::Mode::claims, holder->pid};
  }
  for (const std::string& name : plugin::sockets_in(plugins)) {
    const bool rival = std::find(kOtherPlugins.begin(), kOtherPlugins.end(), name) != kOtherPlugins.end();
    if (!rival && !plugin::is_agent_socket(name)) continue;
    if (facts.device_plugins.size() == kMostSockets) break;
    const std::string path = plugins + "/" + name;
    if (state_of(path) == SocketState::listening) {
      facts.device_plugins.push_back(plugins + "/" + printable(name, kMaxShownName));
    }
  }
  return facts;
}

}  // namespace neuron::agent
