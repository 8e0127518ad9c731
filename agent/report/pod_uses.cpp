#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "agent/base/parse.h"
#include "agent/core/hardware.h"
#include "agent/model/resource.h"
#include "agent/report/node_report.h"

namespace neuron::report {
namespace {

constexpr int kMaxId = 1 << 20;  // of a device or core in the kubelet's answer

void add_core(PodUse& use, int core, const NodeReport& report) {
  for (std::size_t i = 0; i < report.core_ids.size(); ++i) {
    const auto& ids = report.core_ids[i];
    if (!std::ranges::binary_search(ids, core)) continue;
    use.cores.insert(core);
    use.devices.insert(report.host.devices[i].index);
  }
}

void add_device(PodUse& use, int index, const NodeReport& report) {
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    if (report.host.devices[i].index != index) continue;
    use.devices.insert(index);
    if (i < report.core_ids.size()) use.cores.insert(report.core_ids[i].begin(), report.core_ids[i].end());
  }
}

void add_efa(PodUse& use, const std::string& name, const NodeReport& report) {
  for (const model::EfaInterface& efa : report.host.efas) {
    if (!name.empty() && efa.name == name) use.efas.insert(name);
  }
}

void add_id(PodUse& use, const std::string& resource, const std::string& id, const NodeReport& report) {
  const auto named = model::parse_resource(resource);
  if (!named) return;
  if (*named == model::Resource::efa) return add_efa(use, id, report);
  const auto number = parse_int(id, 0, kMaxId);
  if (!number) return;
  if (*named == model::Resource::neuroncore) return add_core(use, *number, report);
  add_device(use, *number, report);
}

void add_claimed(PodUse& use, const std::string& device, const NodeReport& report) {
  const auto name = core::parse_pool_name(device);
  if (!name) return;
  const core::Hardware hardware = core::hardware_of(*name, report.host);
  for (const int index : hardware.device_indices()) use.devices.insert(index);
  for (const int id : core::core_ids_of(hardware, report.host)) use.cores.insert(id);
  use.efas.insert(hardware.efas.begin(), hardware.efas.end());
}

using Names = std::array<std::string, 4>;  // namespace, pod, container, claim: one entry each

Names names_of(const holdings::Holding& held) {
  Names names;
  std::string_view rest = held.shown_as;
  for (std::size_t i = 0; i < 3; ++i) names[i] = take_until(rest, '/');
  if (names[2].empty()) names = {held.claim_namespace, "", "", ""};  // "", or "pod <uid>/container"
  names[3] = held.claim;
  return names;
}

PodUse& entry_of(std::map<Names, PodUse>& uses, const Names& names) {
  PodUse& use = uses[names];
  use.pod_namespace = names[0];
  use.pod = names[1];
  use.container = names[2];
  use.claim = names[3];
  return use;
}

std::vector<PodUse> with_hardware(std::map<Names, PodUse> by_container) {
  std::vector<PodUse> uses;
  for (auto& [names, use] : by_container) {
    if (!use.devices.empty() || !use.efas.empty()) uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace

std::vector<PodUse> pod_uses(const std::vector<model::Allocation>& allocations, const NodeReport& report,
                             std::string_view driver) {
  std::map<Names, PodUse> uses;
  for (const model::Allocation& one : allocations) {
    if (!one.claim.empty() && one.resource_name != driver) continue;
    PodUse& use = entry_of(uses, {one.pod_namespace, one.pod, one.container, one.claim});
    for (const std::string& id : one.ids) {
      one.claim.empty() ? add_id(use, one.resource_name, id, report) : add_claimed(use, id, report);
    }
  }
  return with_hardware(std::move(uses));
}

std::vector<PodUse> pod_uses(const std::vector<holdings::Holding>& held, const NodeReport& report) {
  const auto& efas = report.host.efas;
  std::map<Names, PodUse> uses;
  for (const holdings::Holding& one : held) {
    PodUse& use = entry_of(uses, names_of(one));
    use.devices.insert(one.devices.begin(), one.devices.end());
    use.cores.insert(one.cores.begin(), one.cores.end());
    if (one.resource != model::Resource::efa) continue;
    for (const int unit : one.units) {
      const auto position = static_cast<std::size_t>(unit);
      if (position < efas.size() && !efas[position].name.empty()) use.efas.insert(efas[position].name);
    }
  }
  return with_hardware(std::move(uses));
}

}  // namespace neuron::report
