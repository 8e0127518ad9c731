#include <algorithm>
#include <array>
#include <cstdint>
#include <set>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/map_parts.h"
#include "tools/render/text.h"

namespace neuron::fleet::map {
namespace {

// Kubernetes makes generated parts of names from these alone (apimachinery's rand.String).
constexpr std::string_view kGenerated = "bcdfghjklmnpqrstvwxz2456789";

bool consists_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

// The last part of `name` behind a '-'; "" where it has none.
std::string_view last_part(std::string_view name) {
  const auto dash = name.rfind('-');
  return dash == std::string_view::npos || dash == 0 ? std::string_view{} : name.substr(dash + 1);
}

void drop_last_part(std::string& name, std::string_view part) {
  name.resize(name.size() - part.size() - 1);
}

// FNV-1a: the same on every machine, unlike std::hash.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

std::string key_of(const report::PodUse& use) {
  return use.pod_namespace + '/' + parse_pod_name(use.pod).workload;
}

struct Held {
  std::set<std::string> pods;
  std::set<std::pair<const Node*, int>> devices;
  std::set<std::pair<const Node*, std::string>> efas;
};

void count_health(Sums& sums, const model::Health& health) {
  if (!render::is_not_healthy(health)) return;
  ++(health.state == model::HealthState::unhealthy ? sums.unhealthy : sums.degraded);
}

// Logical cores that a container holds, and devices and interfaces.
struct Taken {
  std::set<int> cores;
  std::set<int> devices;
  std::set<std::string> efas;
};

Taken taken_of(const report::NodeReport& report) {
  Taken taken;
  for (const report::PodUse& use : *report.pods) {
    taken.cores.insert(use.cores.begin(), use.cores.end());
    taken.devices.insert(use.devices.begin(), use.devices.end());
    taken.efas.insert(use.efas.begin(), use.efas.end());
  }
  return taken;
}

void add_devices(Sums& sums, const report::NodeReport& report) {
  const auto taken = report.pods ? std::optional<Taken>(taken_of(report)) : std::nullopt;
  for (std::size_t i = 0; i < report.host.devices.size(); ++i) {
    const model::NeuronDevice& device = report.host.devices[i];
    count_health(sums, device.health);
    const bool unhealthy = device.health.state == model::HealthState::unhealthy;
    if (!taken) {
      ++sums.unknown_use;
    } else if (!taken->devices.contains(device.index)) {
      if (!unhealthy) ++sums.free;
    } else if (i < report.core_ids.size()) {
      const auto& ids = report.core_ids[i];
      const bool whole = std::ranges::all_of(ids, [&](int id) { return taken->cores.contains(id); });
      const bool none = std::ranges::none_of(ids, [&](int id) { return taken->cores.contains(id); });
      if (!whole && !none) ++sums.part_free;
    }
  }
  for (const model::EfaInterface& efa : report.host.efas) {
    const bool unhealthy = efa.health.state == model::HealthState::unhealthy;
    if (!taken) ++sums.unknown_efas;
    if (taken && !unhealthy && !taken->efas.contains(efa.name)) ++sums.free_efas;
  }
}

}  // namespace

PodName parse_pod_name(const std::string& pod) {
  constexpr std::size_t kSuffix = 5;     // of a pod
  constexpr std::size_t kLeastHash = 8;  // of a ReplicaSet
  constexpr std::size_t kMostHash = 10;
  PodName name{pod, ""};
  std::string_view part = last_part(name.workload);
  const bool generated = part.size() == kSuffix && consists_of(part, kGenerated);
  if (consists_of(part, "0123456789") && !generated) {
    name.number = part;
    drop_last_part(name.workload, name.number);
    return name;
  }
  if (!generated) return name;
  drop_last_part(name.workload, std::string(part));
  part = last_part(name.workload);
  if (consists_of(part, "0123456789") && part.size() < kSuffix) {  // an indexed Job: "train-3-x7k2p"
    name.number = part;
    drop_last_part(name.workload, name.number);
  } else if (part.size() >= kLeastHash && part.size() <= kMostHash && consists_of(part, kGenerated)) {
    drop_last_part(name.workload, std::string(part));
  }
  return name;
}

Workloads::Workloads(const Fleet& fleet) {
  std::map<std::string, Held> held;
  for (const Node& node : fleet.nodes) {
    if (!node.report || !node.report->pods) continue;
    for (const report::PodUse& use : *node.report->pods) {
      Held& of = held[key_of(use)];
      of.pods.insert(use.pod);
      for (const int device : use.devices) of.devices.emplace(&node, device);
      for (const std::string& efa : use.efas) of.efas.emplace(&node, efa);
    }
  }
  for (const auto& [key, what] : held) {
    Workload workload;
    workload.name = shown(key);
    workload.letters = render::svg::PodMarks::letters(static_cast<int>(workloads_.size()));
    workload.pods = what.pods.size();
    workload.devices = what.devices.size();
    workload.efas = what.efas.size();
    numbers_[key] = workloads_.size();
    workloads_.push_back(std::move(workload));
  }
  choose_colours();
}

void Workloads::choose_colours() {
  std::array<bool, kColours> used{};
  std::size_t free = kColours;
  for (Workload& workload : workloads_) {
    workload.colour = hash_of(workload.name) % kColours;
    while (free > 0 && used[workload.colour]) workload.colour = (workload.colour + 1) % kColours;
    if (!used[workload.colour]) --free;
    used[workload.colour] = true;
  }
}

const Workload& Workloads::of(const report::PodUse& use) const {
  return workloads_[numbers_.at(key_of(use))];
}

std::string colour_class(std::size_t colour) {
  return "p" + std::to_string(colour);
}

std::string shown(const std::string& text) {
  constexpr std::size_t kLongest = 360;
  return printable(text, kLongest);
}

void add(Sums& sums, const Node& node) {
  ++sums.nodes;
  if (node.ready && !*node.ready) ++sums.not_ready;
  if (!node.report) {
    ++sums.without_report;
    return;
  }
  sums.devices += node.report->host.devices.size() + node.report->missing_devices.size();
  sums.unhealthy += node.report->missing_devices.size();
  sums.efas += node.report->host.efas.size();
  add_devices(sums, *node.report);
}

std::string devices_words(const Sums& sums) {
  std::string words = counted(sums.devices, "device");
  if (sums.devices == 0 && sums.without_report > 0) return "devices unknown";
  if (sums.devices == 0) return words;
  words += sums.unknown_use == sums.devices ? ": holders unknown" : ": " + std::to_string(sums.free) + " free";
  if (sums.part_free > 0) words += ", " + std::to_string(sums.part_free) + " partly free";
  if (sums.unhealthy > 0) words += ", " + std::to_string(sums.unhealthy) + " unhealthy";
  if (sums.degraded > 0) words += ", " + std::to_string(sums.degraded) + " degraded or unknown";
  return words;
}

std::string efas_words(const Sums& sums) {
  const std::string words = counted(sums.efas, "EFA interface");
  if (sums.unknown_efas == sums.efas) return words;
  return words + ": " + std::to_string(sums.free_efas) + " free";
}

}  // namespace neuron::fleet::map
