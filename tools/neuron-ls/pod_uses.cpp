#include "tools/neuron-ls/pod_uses.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "agent/base/parse.h"

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

}  // namespace

std::vector<render::PodUse> pod_uses(const std::vector<model::Allocation>& allocations,
                                     const render::NodeReport& report) {
  std::map<std::tuple<std::string, std::string, std::string>, render::PodUse> by_container;
  for (const model::Allocation& one : allocations) {
    render::PodUse& use = by_container[{one.pod_namespace, one.pod, one.container}];
    use.pod_namespace = one.pod_namespace;
    use.pod = one.pod;
    use.container = one.container;
    for (const std::string& id : one.ids) add_id(use, one.resource_name, id, report);
  }
  std::vector<render::PodUse> uses;
  for (auto& [name, use] : by_container) {
    if (!use.devices.empty() || !use.efas.empty()) uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace neuron::ls
