#include "agent/core/ultraserver.h"

#include <algorithm>
#include <map>

#include "agent/core/catalogue.h"

namespace neuron::core {
namespace {

using model::NeuronDevice;
using Phase = Election::Phase;

constexpr const char* kResetAction =
    "inspect the kernel log; reload the Neuron driver or reboot; if that does not help, replace the instance";

// Why a device does not count as reset, by index.
std::map<int, std::string> not_reset(const model::HostScan& scan) {
  std::map<int, std::string> reasons;
  const InstanceType* type = find_instance_type(scan.instance_type);
  for (int index = 0; type != nullptr && index < type->device_count; ++index) reasons[index] = "is missing";
  for (const NeuronDevice& device : scan.devices) {
    if (device.presence == model::Presence::vanished) {
      reasons[device.index] = "has vanished";
    } else if (device.signals.reset_state == 0) {
      reasons[device.index] = "is in reset (reset reads 0)";
    } else if (device.signals.reset_state == 2) {
      reasons[device.index] = "was given up by the driver (reset reads 2)";
    } else {
      reasons.erase(device.index);
    }
  }
  return reasons;
}

Election blocked(const std::map<int, std::string>& reasons) {
  constexpr std::size_t kMostNamed = 4;
  Election election{Phase::blocked, {}, "", kResetAction};
  std::string named;
  for (const auto& [index, reason] : reasons) {
    election.awaited.push_back(index);
    if (election.awaited.size() > kMostNamed) continue;
    named += (named.empty() ? "" : ", ") + ("neuron" + std::to_string(index)) + ' ' + reason;
  }
  if (reasons.size() > kMostNamed) named += " and " + std::to_string(reasons.size() - kMostNamed) + " more";
  election.sentence =
      "the UltraServer election cannot begin (ultraserver_mode: busy) until every device is reset: " + named;
  return election;
}

}  // namespace

Election election_of(const model::HostScan& scan) {
  if (!scan.ultraserver) return {};
  const model::UltraServer& server = *scan.ultraserver;
  if (server.busy) {
    const auto reasons = not_reset(scan);
    if (!reasons.empty()) return blocked(reasons);
    return {Phase::running,
            {},
            "the UltraServer election is running (ultraserver_mode: busy): its servers have up to 14 minutes to find "
            "each other",
            ""};
  }
  if (!server.memberships.empty()) {
    const auto& all = server.memberships.back();
    std::string size = all.nodes > 0 ? " of " + std::to_string(all.nodes) : "";
    return {Phase::linked, {}, "node " + std::to_string(all.node_id) + size + " of UltraServer " + all.server_id, ""};
  }
  const bool works_alone = server.modes == std::vector{4} && !server.partition_nodes;
  if (!works_alone) return {};
  return {Phase::alone,
          {},
          "the UltraServer election ended without another server: this node works alone (ultraserver_mode: 4)",
          "to link the servers, reload the Neuron driver on all servers of the UltraServer within ten minutes of each "
          "other"};
}

}  // namespace neuron::core
