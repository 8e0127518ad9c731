#include "agent/grant/grant.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/base/parse.h"
#include "agent/base/sorted.h"
#include "agent/core/logical_cores.h"

namespace neuron::grant {
namespace {

Grant::DeviceNode node_at(const std::string& path, const GrantOptions& options) {
  return {options.host_path_prefix + path, path};
}

// The LNC that a runtime has to be given because it would read another one, or may.
std::optional<int> lnc_to_set(const NodeUnits& node) {
  const auto& numbered = node.snapshot().host.lnc;
  if (!numbered || node.runtime_lnc() == numbered->value) return std::nullopt;
  return numbered->value;
}

}  // namespace

NodeUnits::NodeUnits(model::SnapshotPtr snapshot) : snapshot_(std::move(snapshot)) {
  const model::HostScan& host = snapshot_->host;
  if (host.lnc) runtime_lnc_ = host.lnc->value;
  topology_ = allocator::make_topology(host);
  const bool is_numbered = host.lnc || !host.lnc_is_unread;
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    position_of_device_[host.devices[i].index] = i;
    if (is_numbered) device_units_.push_back(host.devices[i].index);
    cores_.push_back(core::core_ids_of(host.devices[i], host));
    for (const int core : cores_.back()) {
      position_of_core_[core] = i;
      core_units_.push_back(core);
    }
    find_health_of_cores(i, cores_.back());
  }
  std::sort(core_units_.begin(), core_units_.end());
  for (std::size_t i = 0; i < host.efas.size(); ++i) {
    if (host.efas[i].name.empty()) continue;  // never bound: the kubelet has no name for it
    efa_by_name_[host.efas[i].name] = static_cast<int>(i);
    efa_units_.push_back(static_cast<int>(i));
  }
}

NodeUnits::NodeUnits(model::SnapshotPtr renumbered, const NodeUnits& scanned) : NodeUnits(std::move(renumbered)) {
  runtime_lnc_ = scanned.runtime_lnc_;
}

const std::vector<int>& NodeUnits::units(model::Resource resource) const {
  switch (resource) {
    case model::Resource::neuroncore:
      return core_units_;
    case model::Resource::neuron:
    case model::Resource::neurondevice:
      return device_units_;
    case model::Resource::efa:
      break;
  }
  return efa_units_;
}

std::string NodeUnits::id_of(model::Resource resource, int unit) const {
  return resource == model::Resource::efa ? efa(unit).name : std::to_string(unit);
}

Result<int> NodeUnits::unit_of(model::Resource resource, std::string_view id) const {
  const auto unknown = [&](std::string_view how) {
    return fail(ErrorCode::invalid_argument, std::string(model::resource_name(resource)) + ": this node has no \"" +
                                                 printable(id, 64) + "\"; ids are " + std::string(how));
  };
  if (resource == model::Resource::efa) {
    const auto found = efa_by_name_.find(id);
    if (found == efa_by_name_.end()) return unknown("RDMA device names such as rdmap16s25");
    return found->second;
  }
  constexpr int kMaxUnit = 1'000'000;
  const auto unit = parse_int(id, 0, kMaxUnit);
  const bool canonical = unit && std::to_string(*unit) == id;
  if (resource == model::Resource::neuroncore) {
    if (!canonical || !position_of_core_.contains(*unit)) return unknown("decimal logical core indices");
  } else if (!canonical || !is_in(*unit, device_units_)) {
    return unknown("decimal device indices");
  }
  return *unit;
}

std::size_t NodeUnits::device_position(model::Resource resource, int unit) const {
  return resource == model::Resource::neuroncore ? position_of_core_.at(unit) : position_of_device_.at(unit);
}

void NodeUnits::find_health_of_cores(std::size_t position, const std::vector<int>& core_ids) {
  const model::NeuronDevice& device = snapshot_->host.devices[position];
  for (std::size_t at = 0; at < core_ids.size(); ++at) {
    const auto physical = core::physical_cores_of(device, snapshot_->host, static_cast<int>(at));
    health_of_core_[core_ids[at]] = &core::health_of_cores(device, physical);
  }
}

const model::Health& NodeUnits::health_of(model::Resource resource, int unit) const {
  if (resource == model::Resource::efa) return efa(unit).health;
  if (resource == model::Resource::neuroncore) {
    if (const auto found = health_of_core_.find(unit); found != health_of_core_.end()) return *found->second;
  }
  return snapshot_->host.devices[device_position(resource, unit)].health;
}

std::vector<int> NodeUnits::numa_of(model::Resource resource, int unit) const {
  int node = -1;
  if (resource == model::Resource::efa) {
    node = efa(unit).numa_node.value_or(-1);
  } else if (const auto& numa = snapshot_->host.devices[device_position(resource, unit)].numa_node) {
    node = numa->value;
  }
  return node < 0 ? std::vector<int>{} : std::vector<int>{node};
}

std::vector<int> NodeUnits::cores_of(model::Resource resource, int unit) const {
  if (resource == model::Resource::efa) return {};
  if (resource == model::Resource::neuroncore) return {unit};
  return cores_[device_position(resource, unit)];
}

int NodeUnits::device_of_core(int core) const {
  return snapshot_->host.devices[position_of_core_.at(core)].index;
}

int NodeUnits::device_of(model::Resource resource, int unit) const {
  if (resource == model::Resource::efa) return -1;
  return resource == model::Resource::neuroncore ? device_of_core(unit) : unit;
}

const model::NeuronDevice* NodeUnits::device(int index) const {
  const auto found = position_of_device_.find(index);
  return found == position_of_device_.end() ? nullptr : &snapshot_->host.devices[found->second];
}

const model::EfaInterface& NodeUnits::efa(int unit) const {
  return snapshot_->host.efas.at(static_cast<std::size_t>(unit));
}

std::string visible_cores(const NodeUnits& node, const std::vector<int>& devices, const std::vector<int>& cores,
                          CoreNumbering numbering) {
  if (numbering == CoreNumbering::host) return format_int_list(cores);
  const int per_device = node.topology().cores_per_device;
  std::vector<int> local;
  for (const int core : cores) {
    const int device = node.device_of_core(core);
    const auto place = std::lower_bound(devices.begin(), devices.end(), device) - devices.begin();
    local.push_back(static_cast<int>(place) * per_device + core - device * per_device);
  }
  std::sort(local.begin(), local.end());
  return format_int_list(local);
}

Grant grant_of_cores(const NodeUnits& node, const std::vector<int>& devices, const std::vector<int>& cores,
                     const GrantOptions& options) {
  Grant answer;
  answer.envs["NEURON_RT_VISIBLE_CORES"] = visible_cores(node, devices, cores, options.numbering);
  if (const auto lnc = lnc_to_set(node)) answer.envs[kLncVariable] = std::to_string(*lnc);
  for (const int device : devices) {
    answer.device_nodes.push_back(node_at("/dev/neuron" + std::to_string(device), options));
    if (options.cdi_names) answer.cdi_names.push_back("aws.amazon.com/neuron=" + std::to_string(device));
  }
  return answer;
}

Grant grant_of_efas(const NodeUnits& node, const std::vector<int>& efa_units, const GrantOptions& options) {
  Grant answer;
  for (const int unit : efa_units) {
    const model::EfaInterface& efa = node.efa(unit);
    if (efa.uverbs) answer.device_nodes.push_back(node_at("/dev/infiniband/" + *efa.uverbs, options));
    if (options.cdi_names) answer.cdi_names.push_back("vpc.amazonaws.com/efa=" + efa.name);
  }
  return answer;
}

std::string cdi_text(const std::string& kind, const std::vector<CdiDevice>& devices) {
  using nlohmann::ordered_json;
  ordered_json list = ordered_json::array();
  for (const CdiDevice& device : devices) {
    ordered_json edits = ordered_json::object();
    for (const auto& each : device.device_nodes) {
      edits["deviceNodes"].push_back(
          {{"path", each.container_path}, {"hostPath", each.host_path}, {"permissions", device.permissions}});
    }
    for (const auto& [name, value] : device.envs) edits["env"].push_back(name + "=" + value);
    if (edits.empty()) continue;
    list.push_back({{"name", device.name}, {"containerEdits", std::move(edits)}});
  }
  if (list.empty()) return "";
  const ordered_json spec = {{"cdiVersion", "0.5.0"}, {"kind", kind}, {"devices", std::move(list)}};
  return spec.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string cdi_spec(const NodeUnits& node, model::Resource resource, const GrantOptions& options) {
  const bool efa = resource == model::Resource::efa;
  std::vector<CdiDevice> devices;
  for (const int unit : node.units(resource)) {
    Grant answer = efa ? grant_of_efas(node, {unit}, options) : grant_of_cores(node, {unit}, {}, options);
    devices.push_back({node.id_of(resource, unit), std::move(answer.device_nodes), "rw", {}});
  }
  return cdi_text(efa ? kCdiEfaKind : kCdiNeuronKind, devices);
}

}  // namespace neuron::grant
