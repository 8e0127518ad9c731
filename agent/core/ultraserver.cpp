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

// Devices that do not count as reset, by index, with the reason; and those of which that is not known.
struct NotReset {
  std::map<int, std::string> reasons;
  std::vector<int> unknown;
};

NotReset not_reset(const model::HostScan& scan) {
  NotReset found;
  const InstanceType* type = find_instance_type(scan.instance_type);
  for (int index = 0; type != nullptr && index < type->device_count; ++index) found.reasons[index] = "is missing";
  for (const NeuronDevice& device : scan.devices) {
    std::string& reason = found.reasons[device.index];
    if (device.presence == model::Presence::vanished) {
      reason = "has vanished";
    } else if (device.signals.reset_state == 0) {
      reason = "is in reset (reset reads 0)";
    } else if (device.signals.reset_state == 2) {
      reason = "was given up by the driver (reset reads 2)";
    } else if (!device.signals.reset_state && device.presence == model::Presence::not_answering) {
      reason = "is not answering";
    } else {
      if (!device.signals.reset_state) found.unknown.push_back(device.index);
      found.reasons.erase(device.index);
    }
  }
  return found;
}

// The first few.
std::string joined_few(const std::vector<std::string>& devices) {
  constexpr std::size_t kMostNamed = 4;
  std::string named;
  for (std::size_t i = 0; i < devices.size() && i < kMostNamed; ++i) named += (i > 0 ? ", " : "") + devices[i];
  if (devices.size() > kMostNamed) named += " and " + std::to_string(devices.size() - kMostNamed) + " more";
  return named;
}

Election blocked(const std::map<int, std::string>& reasons) {
  Election election{Phase::blocked, {}, "", kResetAction};
  std::vector<std::string> named;
  for (const auto& [index, reason] : reasons) {
    election.awaited.push_back(index);
    named.push_back("neuron" + std::to_string(index) + ' ' + reason);
  }
  election.sentence = "the UltraServer election cannot begin (ultraserver_mode: busy) until every device is reset: " +
                      joined_few(named);
  return election;
}

Election running(const std::vector<int>& unknown) {
  Election election{Phase::running, {}, "", ""};
  if (unknown.empty()) {
    election.sentence =
        "the UltraServer election is running (ultraserver_mode: busy): its servers have up to 14 minutes to find each "
        "other";
    return election;
  }
  std::vector<std::string> named;
  for (const int index : unknown) named.push_back("neuron" + std::to_string(index));
  election.sentence =
      "the UltraServer election has not ended (ultraserver_mode: busy): it takes up to 14 minutes once every device is "
      "reset, which is not known of " +
      joined_few(named) + " (the file reset was not read)";
  return election;
}

}  // namespace

Election election_of(const model::HostScan& scan) {
  if (!scan.ultraserver) return {};
  const model::UltraServer& server = *scan.ultraserver;
  if (server.busy) {
    const NotReset found = not_reset(scan);
    return found.reasons.empty() ? running(found.unknown) : blocked(found.reasons);
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
