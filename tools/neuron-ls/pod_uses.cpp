#include "tools/neuron-ls/pod_uses.h"

#include <algorithm>
#include <array>
#include <map>

#include "agent/base/parse.h"
#include "agent/core/pool_hardware.h"

namespace neuron::ls {
namespace {

constexpr int kMaxId = 1 << 20;

void add_core(render::PodUse& use, int core, const render::NodeReport& report) {
  for (std::size_t i = 0; i < report.core_ids.size(); ++i) {
    const auto& ids = report.core_ids[i];
    if (!std::binary_search(ids.begin(), ids.end(), core)) continue;
    use.cores.insert(core);
    use.devices.insert(report.host.devices[i].index);
  }
}

void add_device(render::PodUse& use, int index, const render::NodeReport& report) {
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    if (report.host.devices[i].index != index) continue;
    use.devices.insert(index);
    if (i < report.core_ids.size()) use.cores.insert(report.core_ids[i].begin(), report.core_ids[i].end());
  }
}

void add_efa(render::PodUse& use, const std::string& name, const render::NodeReport& report) {
  for (const model::EfaInterface& efa : report.host.efas) {
    if (!name.empty() && efa.name == name) use.efas.insert(name);
  }
}

void add_id(render::PodUse& use, const std::string& resource, const std::string& id, const render::NodeReport& report) {
  if (resource == "vpc.amazonaws.com/efa") return add_efa(use, id, report);
  const auto number = parse_int(id, 0, kMaxId);
  if (!number) return;
  if (resource == "aws.amazon.com/neuroncore") return add_core(use, *number, report);
  if (resource == "aws.amazon.com/neuron" || resource == "aws.amazon.com/neurondevice") {
    add_device(use, *number, report);
  }
}

void add_claimed(render::PodUse& use, const std::string& device, const render::NodeReport& report) {
  const auto name = core::parse_pool_name(device);
  if (!name) return;
  const core::PoolHardware hardware = core::hardware_of(*name, report.host);
  use.devices.insert(hardware.devices.begin(), hardware.devices.end());
  use.cores.insert(hardware.cores.begin(), hardware.cores.end());
  use.efas.insert(hardware.efas.begin(), hardware.efas.end());
}

}  // namespace

std::vector<render::PodUse> pod_uses(const std::vector<model::Allocation>& allocations,
                                     const render::NodeReport& report, std::string_view driver) {
  std::map<std::array<std::string, 4>, render::PodUse> by_container;
  for (const model::Allocation& one : allocations) {
    if (!one.claim.empty() && one.resource_name != driver) continue;
    render::PodUse& use = by_container[{one.pod_namespace, one.pod, one.container, one.claim}];
    use.pod_namespace = one.pod_namespace;
    use.pod = one.pod;
    use.container = one.container;
    use.claim = one.claim;
    for (const std::string& id : one.ids) {
      one.claim.empty() ? add_id(use, one.resource_name, id, report) : add_claimed(use, id, report);
    }
  }
  std::vector<render::PodUse> uses;
  for (auto& [name, use] : by_container) {
    if (!use.devices.empty() || !use.efas.empty()) uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace neuron::ls
