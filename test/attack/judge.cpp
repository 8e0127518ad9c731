#include "test/attack/judge.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/base/parse.h"
#include "test/fakes/sanitized.h"

namespace neuron::attack {
namespace {

using fakes::kCore;
using fakes::kEfa;
using fakes::kNeuron;

// A field of /proc/<pid>/status, 0 when the process is gone.
int status_field(int pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::atoi(line.c_str() + name.size() + 1);
  }
  return 0;
}

int open_files(int pid) {
  std::error_code error;
  int count = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    ++count;
  }
  return count;
}

}  // namespace

Holding Judge::holding_of(const sim::PodView& pod) const {
  Holding holding;
  for (const sim::ContainerView& container : pod.containers) {
    for (const sim::DeviceId& held : container.devices) {
      const auto index = parse_int(held.id, 0, 4096);
      if (held.resource == kEfa) {
        holding.efas.insert(held.id);
      } else if (held.resource == kCore && index) {
        holding.cores.insert(*index);
      } else if (index) {
        for (int core = 0; core < cores_per_device_; ++core) holding.cores.insert(*index * cores_per_device_ + core);
      }
    }
  }
  return holding;
}

void Judge::nothing_twice() {
  std::map<int, std::string> owner_of_core;
  std::map<std::string, std::string> owner_of_efa;
  const auto claim = [&](auto& owners, const auto& unit, const std::string& pod, const std::string& what) {
    const auto [found, fresh] = owners.emplace(unit, pod);
    if (!fresh && found->second != pod) complain(what + " is in " + found->second + " and in " + pod);
  };
  for (const sim::PodView& pod : node_.kubelet->pods()) {
    const Holding holding = holding_of(pod);
    for (const int core : holding.cores) claim(owner_of_core, core, pod.name, "core " + std::to_string(core));
    for (const std::string& efa : holding.efas) claim(owner_of_efa, efa, pod.name, efa);
  }
}

void Judge::alive_and_bounded() {
  // AddressSanitizer alone keeps up to 256 MiB of what was freed.
  constexpr int kResidentKiB = (fakes::kSanitized ? 8 : 1) * 96 * 1024;
  constexpr int kThreads = 64;
  constexpr int kDescriptors = 256;
  constexpr std::ptrdiff_t kLines = 400;
  if (!node_.agent->running()) {
    complain("the agent ended with " + std::to_string(node_.agent->wait(std::chrono::milliseconds(0)).value_or(0)));
    return;
  }
  const int pid = node_.agent->pid();
  const auto within = [&](const std::string& what, std::ptrdiff_t value, std::ptrdiff_t most) {
    if (value > most) complain(what + ": " + std::to_string(value) + ", more than " + std::to_string(most));
  };
  within("resident KiB", status_field(pid, "VmRSS"), kResidentKiB);
  within("threads", status_field(pid, "Threads"), kThreads);
  within("descriptors", open_files(pid), kDescriptors);
  const std::string log = node_.agent->log();
  const auto from = log.begin() + static_cast<std::ptrdiff_t>(std::min(log_seen_, log.size()));
  within("lines of log", std::count(from, log.end(), '\n'), kLines);
  log_seen_ = log.size();
}

std::set<int> Judge::held_cores(const char* except_resource) const {
  std::set<int> cores;
  for (sim::PodView pod : node_.kubelet->pods()) {
    for (sim::ContainerView& container : pod.containers) {
      std::erase_if(container.devices, [&](const auto& held) { return held.resource == except_resource; });
    }
    cores.merge(holding_of(pod).cores);
  }
  return cores;
}

std::vector<std::string> Judge::complaints_of(const std::set<int>& broken_devices,
                                              const std::set<std::string>& broken_efas) const {
  std::vector<std::string> complaints;
  const auto blame = [&](const std::string& what) { complaints.push_back(what + " is not offered and is sound"); };
  const std::set<int> through_cores = held_cores(kNeuron);
  const std::set<int> through_devices = held_cores(kCore);
  for (const std::string& id : node_.kubelet->resource_view(kNeuron).unhealthy) {
    const int device = parse_int(id, 0, 64).value_or(-1);
    bool held = false;
    for (int core = 0; core < cores_per_device_; ++core) {
      held = held || through_cores.contains(device * cores_per_device_ + core);
    }
    if (!held && !broken_devices.contains(device)) blame("neuron " + id);
  }
  for (const std::string& id : node_.kubelet->resource_view(kCore).unhealthy) {
    const int core = parse_int(id, 0, 4096).value_or(-1);
    const bool broken = broken_devices.contains(core / cores_per_device_);
    if (!through_devices.contains(core) && !broken) blame("neuroncore " + id);
  }
  for (const std::string& id : node_.kubelet->resource_view(kEfa).unhealthy) {
    if (!broken_efas.contains(id)) blame("efa " + id);
  }
  return complaints;
}

bool Judge::whole() const {
  for (const std::string& name : resources_) {
    const sim::ResourceView view = node_.kubelet->resource_view(name);
    if (view.capacity == 0 || !view.connected) return false;
  }
  return complaints_of({}, {}).empty();
}

std::string Judge::state() {
  std::string text;
  for (const auto& [name, view] : node_.kubelet->resources()) {
    text += name + " " + std::to_string(view.allocatable) + "/" + std::to_string(view.capacity) +
            (view.connected ? "" : " not connected") + "; unhealthy";
    for (const std::string& id : view.unhealthy) text += " " + id;
    text += "\n";
  }
  return text;
}

}  // namespace neuron::attack
