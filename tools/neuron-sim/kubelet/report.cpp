#include "tools/neuron-sim/kubelet/shell.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "agent/allocator/allocator.h"
#include "agent/base/parse.h"
#include "agent/core/logical_cores.h"

namespace neuron::sim {
namespace {

constexpr std::size_t kColumns = 80;

// A label and its words, laid out in two columns.
struct Row {
  std::string label;
  std::vector<std::string> words;
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, ' ')) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

// `words` filled into lines that begin after `indent` columns; the first line has no indent of its own.
std::string fill(const std::vector<std::string>& words, std::size_t indent) {
  std::string text;
  std::size_t column = indent;
  for (const std::string& word : words) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
  }
  return text;
}

std::string layout(const std::vector<Row>& rows, std::size_t indent) {
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.label.size());
  std::string text;
  for (const Row& row : rows) {
    text +=
        fmt::format("{}{:<{}}  {}\n", std::string(indent, ' '), row.label, width, fill(row.words, indent + width + 2));
  }
  return text;
}

// The directory that every host path adds before its container path; nullopt when they do not agree.
std::optional<std::string> host_prefix(const std::vector<DeviceNode>& devices) {
  std::optional<std::string> prefix;
  for (const DeviceNode& node : devices) {
    if (!node.host_path.ends_with(node.container_path)) return std::nullopt;
    const std::string own = node.host_path.substr(0, node.host_path.size() - node.container_path.size());
    if (prefix && *prefix != own) return std::nullopt;
    prefix = own;
  }
  return prefix;
}

void add_device_rows(std::vector<Row>& rows, const std::vector<DeviceNode>& devices) {
  if (devices.empty()) return;
  const std::optional<std::string> prefix = host_prefix(devices);
  std::map<std::string, Row> by_permission;
  for (const DeviceNode& node : devices) {
    Row& row = by_permission[node.permissions];
    row.label = "devices (" + node.permissions + ")";
    row.words.push_back(prefix ? node.container_path : node.container_path + "=" + node.host_path);
  }
  for (auto& [permissions, row] : by_permission) rows.push_back(std::move(row));
  if (prefix && !prefix->empty()) rows.push_back({"from host", {*prefix}});
}

std::string full_name(const std::string& ns, const std::string& name) {
  return ns == "default" ? name : ns + "/" + name;
}

std::string table(const std::vector<std::vector<std::string>>& lines, const std::vector<bool>& right) {
  std::vector<std::size_t> widths(right.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::size_t last_column = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) last_column += widths[i] + 2;
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      row += right[i] ? fmt::format("{:>{}}  ", line[i], widths[i]) : fmt::format("{:<{}}  ", line[i], widths[i]);
    }
    row += fill(words_of(line.back()), last_column);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

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
      const auto found = std::ranges::find(host_.efas, id, &model::EfaInterface::name);
      if (found == host_.efas.end()) return std::nullopt;
      return static_cast<int>(found - host_.efas.begin());
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
      if (std::ranges::count(cores, unit) > 0) return {unit};
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
      for (const DeviceId& device : container.devices) held.add(hardware, device.resource, device.id);
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
    if (std::ranges::none_of(cores, [&](int core) { return held.cores.contains(core); })) free.push_back(*unit);
  }
  std::ranges::sort(free);
  return free;
}

std::string left_text(const Hardware* hardware, const NodeUse& use) {
  const Held held = held_by(use.pods, hardware);
  std::string text;
  for (const auto& [resource, view] : use.resources) {
    const bool counted = hardware == nullptr || kind_of(resource) == Kind::other;
    const int left = counted ? std::max(0, view.allocatable - view.in_use)
                             : static_cast<int>(free_units(*hardware, resource, use, held).size());
    text += fmt::format("{}{} {} of {}", text.empty() ? "" : ", ", short_resource_name(resource), left, view.capacity);
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

std::string ids_text(const IdSet& ids) {
  std::vector<int> numbers;
  for (const std::string& id : ids) {
    const auto number = parse_int(id, 0, std::numeric_limits<int>::max());
    if (number && std::to_string(*number) == id) numbers.push_back(*number);
  }
  if (numbers.size() == ids.size()) {
    std::ranges::sort(numbers);
    return format_int_list(numbers);
  }
  return fmt::format("{}", fmt::join(in_reading_order(ids), " "));
}

std::string container_text(const ContainerGrant& grant, const ContainerNotes& notes) {
  std::vector<Row> rows;
  for (const auto& [resource, ids] : grant.ids) {
    const std::string shown = ids_text(IdSet(ids.begin(), ids.end()));
    rows.push_back({resource, words_of(fmt::format("{} unit{}: {}", ids.size(), ids.size() == 1 ? "" : "s", shown))});
    if (const auto why = notes.why.find(resource); why != notes.why.end()) {
      rows.push_back({"  because", words_of(why->second)});
    }
  }
  for (const auto& [claim, devices] : grant.claims) rows.push_back({"claim " + claim, devices});
  for (const std::string& resource : grant.unserved) {
    rows.push_back({resource, words_of("never registered: admitted without it")});
  }
  for (const auto& [key, value] : grant.env) rows.push_back({"env", {printable(key + "=" + value, 400)}});
  add_device_rows(rows, grant.devices);
  if (!grant.cdi_names.empty()) rows.push_back({"CDI", grant.cdi_names});
  for (const std::string& conflict : grant.conflicts) rows.push_back({"conflict", words_of(conflict)});
  if (!grant.start_error.empty()) rows.push_back({"not started", words_of(grant.start_error)});
  if (rows.empty()) return fmt::format("  {}: no devices\n", grant.name);
  const std::string asked = notes.asked.empty() ? "" : fmt::format(", asked {}", notes.asked);
  return fmt::format("  {}{}\n", grant.name, asked) + layout(rows, 4);
}

std::string pod_text(const PodSpec& pod, const Result<PodResult>& result, const PodNotes& notes) {
  const std::string left = notes.left.empty() ? "" : fmt::format("  left: {}\n", fill(words_of(notes.left), 8));
  const std::string name = full_name(pod.ns, pod.name);
  if (!result) {
    return fmt::format("pod {}: refused\n  {}\n", name, fill(words_of(printable(result.error().message, 1000)), 2)) +
           left;
  }
  std::string text = fmt::format("pod {}: admitted\n", name);
  for (std::size_t i = 0; i < result->containers.size(); ++i) {
    text += container_text(result->containers[i], i < notes.containers.size() ? notes.containers[i] : ContainerNotes{});
  }
  return text + left;
}

std::string resources_text(const std::map<std::string, ResourceView>& resources) {
  if (resources.empty()) return "no resource was ever registered\n";
  std::vector<std::vector<std::string>> lines = {{"RESOURCE", "CAPACITY", "ALLOCATABLE", "IN USE", "UNHEALTHY"}};
  for (const auto& [resource, view] : resources) {
    std::string note = ids_text(view.unhealthy);
    if (!view.connected) note += note.empty() ? "(plugin gone)" : " (plugin gone)";
    lines.push_back({resource, std::to_string(view.capacity), std::to_string(view.allocatable),
                     std::to_string(view.in_use), note.empty() ? "-" : note});
  }
  return table(lines, {false, true, true, true, false});
}

std::string pods_text(const std::vector<PodView>& pods) {
  if (pods.empty()) return "no pods\n";
  std::vector<std::vector<std::string>> lines = {{"POD", "CONTAINER", "RESOURCE", "DEVICES"}};
  for (const PodView& pod : pods) {
    for (const ContainerView& container : pod.containers) {
      std::map<std::string, IdSet> held;
      for (const DeviceId& device : container.devices) held[device.resource].insert(device.id);
      for (const auto& [claim, devices] : container.claims) held["claim " + claim] = {devices.begin(), devices.end()};
      if (held.empty()) held["-"] = {};
      for (const auto& [resource, ids] : held) {
        lines.push_back({full_name(pod.ns, pod.name), container.name, resource, ids.empty() ? "-" : ids_text(ids)});
      }
    }
  }
  return table(lines, {false, false, false, false});
}

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
    const auto spec = std::ranges::find(pod.containers, grant.name, &ContainerSpec::name);
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
