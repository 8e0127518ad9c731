#include "tools/neuron-sim/kubelet/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "agent/allocator/allocator.h"
#include "agent/base/parse.h"
#include "agent/core/logical_cores.h"
#include "tools/neuron-sim/kubelet/script.h"

namespace neuron::sim {
namespace {

using Units = std::vector<int>;

enum class Kind { device, core, efa, other };

Kind kind_of(const std::string& resource) {
  if (resource == full_resource_name("neuroncore")) return Kind::core;
  if (resource == full_resource_name("efa")) return Kind::efa;
  const bool device = resource == full_resource_name("neuron") || resource == full_resource_name("neurondevice");
  return device ? Kind::device : Kind::other;
}

// One host in the kubelet's terms.
class Hardware {
 public:
  explicit Hardware(const model::HostScan& host) : host_(host), topology_(allocator::make_topology(host)) {}

  [[nodiscard]] const allocator::NodeTopology& topology() const { return topology_; }

  // nullopt for an id that this host does not have.
  [[nodiscard]] std::optional<int> unit_of(Kind kind, const std::string& id) const {
    if (kind == Kind::efa) {
      for (std::size_t i = 0; i < host_.efas.size(); ++i) {
        if (host_.efas[i].name == id) return static_cast<int>(i);
      }
      return std::nullopt;
    }
    const auto number = parse_int(id, 0, std::numeric_limits<int>::max());
    if (!number || cores_of(kind, *number).empty()) return std::nullopt;
    return *number;
  }

  // Global core ids; empty for EFAs and for a unit that does not exist.
  [[nodiscard]] Units cores_of(Kind kind, int unit) const {
    if (kind == Kind::efa) return {};
    for (const model::NeuronDevice& device : host_.devices) {
      if (kind == Kind::device && device.index != unit) continue;
      Units cores = core::core_ids_of(device, host_);
      if (kind == Kind::device) return cores;
      if (std::find(cores.begin(), cores.end(), unit) != cores.end()) return {unit};
    }
    return {};
  }

  [[nodiscard]] int device_of(Kind kind, int unit) const {
    return kind == Kind::core ? unit / std::max(1, topology_.cores_per_device) : unit;
  }

 private:
  const model::HostScan& host_;
  const allocator::NodeTopology topology_;
};

// Units held by containers: cores through any resource, EFAs by position, other ids unchanged.
struct Held {
  std::set<int> cores;
  std::set<int> efas;
  std::map<std::string, IdSet> ids;

  void add(const Hardware* hardware, const std::string& resource, const std::string& id) {
    ids[resource].insert(id);
    const Kind kind = kind_of(resource);
    const auto unit = hardware == nullptr || kind == Kind::other ? std::nullopt : hardware->unit_of(kind, id);
    if (!unit) return;
    if (kind == Kind::efa) efas.insert(*unit);
    for (const int core : hardware->cores_of(kind, *unit)) cores.insert(core);
  }
};

Held held_by(const std::vector<PodView>& pods, const Hardware* hardware) {
  Held held;
  for (const PodView& pod : pods) {
    for (const ContainerView& container : pod.containers) {
      for (const HeldDevice& device : container.devices) held.add(hardware, device.resource, device.id);
    }
  }
  return held;
}

// The healthy units of a resource whose hardware no container holds, ascending.
Units free_units(const Hardware& hardware, const std::string& resource, const NodeUse& use, const Held& held) {
  const auto view = use.resources.find(resource);
  if (view == use.resources.end()) return {};
  const Kind kind = kind_of(resource);
  Units free;
  for (const std::string& id : view->second.healthy) {
    const auto unit = hardware.unit_of(kind, id);
    if (!unit || held.efas.contains(kind == Kind::efa ? *unit : -1)) continue;
    const Units cores = hardware.cores_of(kind, *unit);
    if (std::none_of(cores.begin(), cores.end(), [&](int core) { return held.cores.contains(core); })) {
      free.push_back(*unit);
    }
  }
  std::sort(free.begin(), free.end());
  return free;
}

// The free units of one resource.
int left_of(const Hardware* hardware, const std::string& resource, const NodeUse& use, const Held& held) {
  const ResourceView& view = use.resources.at(resource);
  if (hardware == nullptr || kind_of(resource) == Kind::other) return std::max(0, view.allocatable - view.in_use);
  return static_cast<int>(free_units(*hardware, resource, use, held).size());
}

std::string left_text(const Hardware* hardware, const NodeUse& use) {
  const Held held = held_by(use.pods, hardware);
  std::string text;
  for (const auto& [resource, view] : use.resources) {
    text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", short_resource_name(resource),
                        left_of(hardware, resource, use, held), view.capacity);
  }
  return text;
}

std::string asked_text(const ContainerSpec& container) {
  std::string text;
  for (const auto& [resource, count] : container.requests) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", short_resource_name(resource), count);
  }
  return text;
}

Units units_of(const Hardware& hardware, Kind kind, const std::vector<std::string>& ids) {
  Units units;
  for (const std::string& id : ids) units.push_back(hardware.unit_of(kind, id).value_or(-1));
  return units;
}

allocator::Reason reason_of(const Hardware& hardware, Kind kind, const allocator::ChooseRequest& request,
                            const Units& chosen) {
  if (kind == Kind::core) return allocator::explain_cores(hardware.topology(), request, chosen);
  if (kind == Kind::device) return allocator::explain_devices(hardware.topology(), request, chosen);
  return allocator::explain_efas(hardware.topology(), request, chosen);
}

std::map<std::string, std::string> reasons(const Hardware& hardware, const ContainerGrant& grant, const NodeUse& use,
                                           const Held& held) {
  Units devices;
  for (const auto& [resource, ids] : grant.ids) {
    const Kind kind = kind_of(resource);
    if (kind != Kind::device && kind != Kind::core) continue;
    for (const int unit : units_of(hardware, kind, ids)) devices.push_back(hardware.device_of(kind, unit));
  }
  std::map<std::string, std::string> why;
  for (const auto& [resource, ids] : grant.ids) {
    const Kind kind = kind_of(resource);
    if (kind == Kind::other) continue;
    const Units chosen = units_of(hardware, kind, ids);
    allocator::ChooseRequest request;
    request.available = free_units(hardware, resource, use, held);
    request.available.insert(request.available.end(), chosen.begin(), chosen.end());
    if (kind == Kind::efa) request.prefer_devices = devices;
    why[resource] = allocator::phrase(reason_of(hardware, kind, request, chosen));
  }
  return why;
}

}  // namespace

PodNotes explain_pod(const PodSpec& pod, const Result<PodResult>& result, const NodeUse& before, const NodeUse& after,
                     const model::HostScan* host) {
  std::optional<Hardware> known;
  if (host != nullptr) known.emplace(*host);
  const Hardware* hardware = known ? &*known : nullptr;
  PodNotes notes;
  notes.left = left_text(hardware, after);
  if (!result) return notes;
  Held held = held_by(before.pods, hardware);
  for (const ContainerGrant& grant : result->containers) {
    const auto spec = std::find_if(pod.containers.begin(), pod.containers.end(),
                                   [&](const ContainerSpec& container) { return container.name == grant.name; });
    ContainerNotes& container = notes.containers.emplace_back();
    if (hardware == nullptr) continue;
    if (spec != pod.containers.end()) container.asked = asked_text(*spec);
    container.why = reasons(*hardware, grant, before, held);
    if (spec != pod.containers.end() && spec->kind == ContainerKind::init) continue;  // others inherit its devices
    for (const auto& [resource, ids] : grant.ids) {
      for (const std::string& id : ids) held.add(hardware, resource, id);
    }
  }
  return notes;
}

}  // namespace neuron::sim
