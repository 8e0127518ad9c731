#include "plugin/dra/claim/claim_units.h"

#include <algorithm>

#include "agent/base/parse.h"
#include "agent/core/pool_names.h"
#include "plugin/dra/slices/pool.h"

namespace neuron::plugin::dra {
namespace {

std::string quoted(const std::string& pool_device) {
  return "\"" + printable(pool_device, 64) + "\"";
}

Error not_here(const std::string& pool_device) {
  return make_error(ErrorCode::not_found, quoted(pool_device) +
                                              " is allocated, but this node has no such device; delete the pod, so "
                                              "that a new one is scheduled onto present devices");
}

struct Named {
  core::PoolName name;
  core::PoolHardware hardware;
};

// All of what the name says is there.
Result<Named> find(const grant::NodeUnits& node, const std::string& pool_device) {
  const auto name = core::parse_pool_name(pool_device);
  if (!name) return fail(ErrorCode::invalid_argument, quoted(pool_device) + " is not a device that this driver offers");
  const model::HostScan& host = node.snapshot().host;
  core::PoolHardware hardware = core::hardware_of(*name, host);
  if (hardware.devices.empty() && hardware.efas.empty()) return fail(not_here(pool_device));
  if (!std::holds_alternative<core::EfaName>(*name) &&
      hardware.devices.size() != core::named_devices(*name, host).size()) {
    return fail(not_here(pool_device));
  }
  return Named{*name, std::move(hardware)};
}

// The units of the hardware, as the node calls them, with the worst health first.
const model::Health& worst_health(const grant::NodeUnits& node, const Named& named) {
  const model::Health* worst = nullptr;
  const auto look = [&](model::Resource resource, int unit) {
    const model::Health& health = node.health_of(resource, unit);
    if (worst == nullptr || model::badness(health.state) > model::badness(worst->state)) worst = &health;
  };
  if (std::holds_alternative<core::CoreName>(named.name) && !named.hardware.cores.empty()) {
    for (const int core : named.hardware.cores) look(model::Resource::neuroncore, core);
  } else {
    for (const int device : named.hardware.devices) look(model::Resource::neuron, device);
  }
  for (const std::string& efa : named.hardware.efas) {
    if (const auto unit = node.unit_of(model::Resource::efa, efa)) look(model::Resource::efa, *unit);
  }
  static const model::Health kUnknown;
  return worst == nullptr ? kUnknown : *worst;
}

}  // namespace

Result<Hardware> hardware_of(const grant::NodeUnits& node, const std::string& pool_device) {
  TRY_ASSIGN(const Named named, find(node, pool_device));
  Hardware hardware;
  hardware.efas = named.hardware.efas;
  for (const int device : named.hardware.devices) hardware.devices.push_back({device, {}});
  if (const auto* core = std::get_if<core::CoreName>(&named.name)) {
    const auto& lnc = node.snapshot().host.lnc;
    if (!lnc || named.hardware.cores.empty()) return fail(not_here(pool_device));
    for (int i = 0; i < lnc->value; ++i) hardware.devices[0].places.push_back(core->core * lnc->value + i);
  }
  return hardware;
}

Result<void> check_offered(const grant::NodeUnits& node, const std::string& pool_device) {
  const auto name = core::parse_pool_name(pool_device);
  const auto* group = name ? std::get_if<GroupName>(&*name) : nullptr;
  if (group == nullptr) return {};
  const std::vector<Group> groups = groups_of(node);
  const bool is_one = std::any_of(groups.begin(), groups.end(), [&](const Group& one) { return one.name == *group; });
  return is_one ? Result<void>() : fail(not_here(pool_device));
}

Result<void> check_health(const grant::NodeUnits& node, const ClaimResult& result, const UnhealthyTaint& taint) {
  TRY_ASSIGN(const Named named, find(node, result.device));
  const model::Health& health = worst_health(node, named);
  if (health.state != model::HealthState::unhealthy) return {};
  if (!taint.effect.empty() && tolerates(result.tolerations, taint.key, health.reason, taint.effect)) return {};
  std::string why =
      quoted(result.device) + " is unhealthy: " + (health.sentence.empty() ? health.reason : health.sentence);
  if (!health.action.empty()) why += "; " + health.action;
  return fail(ErrorCode::failed_precondition, why + "; delete the pod, so that a new one gets another device");
}

}  // namespace neuron::plugin::dra
