// The rules, checked.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "test/model/world.h"

namespace neuron::check {
namespace {

std::string words(const std::set<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

constexpr std::array kHardware = {model::Resource::neuroncore, model::Resource::neuron, model::Resource::neurondevice};

}  // namespace

void World::broken(const std::string& what) {
  if (broken_) return;
  broken_ = what;
  say("BROKEN: " + what);
}

// Hardware that a running container uses is not offered through another resource.
std::optional<std::string> World::ledger_gap() const {
  if (!agent_ || !agent_->serving()) return std::nullopt;
  for (const model::Resource resource : kHardware) {
    const std::set<int> used = truth_->blocked(resource, false);
    if (used.empty()) continue;
    const auto list = agent_->allocations().unit_list(resource);
    for (const plugin::UnitState& unit : *list) {
      if (!unit.healthy || truth_->has(resource, unit.id)) continue;
      for (const int core : node_->cores_of(resource, std::stoi(unit.id))) {
        if (!used.contains(core)) continue;
        return fmt::format("the agent offers {} {} though core {} is used by {}", model::resource_name(resource),
                           unit.id, core, fmt::join(truth_->holders_of(core), " or "));
      }
    }
  }
  return std::nullopt;
}

void World::check_ledger(const std::string& when) {
  if (const auto gap = ledger_gap()) broken(when + ": " + *gap);
}

// What the agent learns through the checkpoint may lag behind, for moments: that breaks no rule until somebody is given
// the hardware (Truth::start sees that), but it must not last.
void World::watch_ledger() {
  const auto gap = ledger_gap();
  if (!gap || !kubelet_up_) return gap_since_.reset();
  if (!gap_since_) {
    say("ledger gap: " + *gap);
    ++tally_.ledger_gaps;
    gap_since_ = time_.now();
  }
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(time_.now() - *gap_since_);
  tally_.longest_gap_ms = std::max<std::int64_t>(tally_.longest_gap_ms, age.count());
  constexpr std::chrono::seconds kMostLag{4};  // List comes half a second after an answer, and may itself take two
  if (age > kMostLag) broken(fmt::format("for {} ms: {}", age.count(), *gap));
}

// On a quiet node the kubelet's lists are exactly: all units that are offered under the name but the broken ones and
// those used otherwise.
void World::check_lists() {
  if (!kubelet_up_ || !agent_ || broken_) return;
  for (const model::Resource resource : model::kAllResources) {
    if (offer_.serves(resource) && !broken_) check_list(resource);
  }
}

void World::check_list(model::Resource resource) {
  const auto resources = kubelet_->resources();
  const auto found = resources.find(std::string(model::resource_name(resource)));
  const std::set<int> forgotten = truth_->forgotten();
  const std::set<int> used = resource != model::Resource::efa ? truth_->blocked(resource, true) : std::set<int>{};
  for (const int unit : node_->units(resource)) {
    const std::string id = node_->id_of(resource, unit);
    if (truth_->has(resource, id)) continue;  // the kubelet offers it to nobody
    const bool offered = offer_.offers(resource, node_->device_of(resource, unit));
    if (found == resources.end() || !found->second.connected) {  // or from an agent before this one
      if (offered) return broken("quiet node, not registered: " + std::string(resource_name(resource)));
      continue;
    }
    const bool listed = found->second.healthy.contains(id) || found->second.unhealthy.contains(id);
    if (listed != offered) {
      return broken(fmt::format("quiet node: {} {} is {} at the kubelet", resource_name(resource), id,
                                listed ? "listed, though not offered under this name," : "not listed"));
    }
    const auto cores = node_->cores_of(resource, unit);
    if (std::ranges::any_of(cores, [&](int core) { return forgotten.contains(core); })) continue;
    const bool in_use = std::any_of(cores.begin(), cores.end(), [&](int core) { return used.contains(core); });
    const bool well = node_->health_of(resource, unit).state == model::HealthState::healthy;
    if (found->second.healthy.contains(id) == (offered && well && !in_use)) continue;
    std::vector<std::string> users;
    for (const int core : cores) std::ranges::copy(truth_->holders_of(core), std::back_inserter(users));
    return broken(fmt::format("quiet node: {} {} is {} at the kubelet, healthy={}, its cores {} are used by [{}]",
                              resource_name(resource), id, well && !in_use ? "not offered" : "offered", well,
                              words({cores.begin(), cores.end()}), fmt::join(users, " and ")));
  }
}

// The kubelet does not survive a device that leaves while a container has it. An agent that started on an old
// checkpoint learns of an init container's devices only with the write that its own list causes.
void World::check_nothing_leaves(model::Resource resource, const plugin::UnitList& list) {
  if (started_on_old_file_) return;
  std::set<std::string_view> listed;
  for (const plugin::UnitState& unit : list) listed.insert(unit.id);
  for (const sim::PodView& pod : kubelet_->pods()) {
    for (const auto& container : pod.containers) {
      for (const auto& device : container.devices) {
        if (device.resource != resource_name(resource) || listed.contains(device.id)) continue;
        broken(fmt::format("{} {} leaves the list while {}/{} has it", device.resource, device.id, pod.name,
                           container.name));
      }
    }
  }
}

void World::check_refusal(const sim::PodSpec& spec, const std::string& message) {
  const auto says = [&](const char* text) { return message.find(text) != std::string::npos; };
  if (says("the container was just allocated")) {
    const bool asks_twice = std::any_of(spec.containers.begin(), spec.containers.end(), [](const auto& container) {
      return std::count_if(container.requests.begin(), container.requests.end(), [](const auto& request) {
               const auto resource = model::parse_resource(request.first);
               return request.second > 0 && resource && *resource != model::Resource::efa;
             }) > 1;
    });
    ++tally_.refused[asks_twice ? "two resources of one container, not the same silicon"
                                : "taken for a container refused before it"];
    if (!asks_twice && calm_) broken("taken for a container refused before it: " + message);
    return;
  }
  for (const char* kind : {"unavailable for", "no healthy devices", "Topology locality", "has been stopped",
                           "unregistered", "nobody listens", "kubelet ended", "is unhealthy", "no longer healthy",
                           "unexpectedly allocated", "unknown Device", "is offered under another resource name now"}) {
    if (!says(kind)) continue;
    ++tally_.refused[std::string("kubelet or health: ") + kind];
    return;
  }
  if (says("though the kubelet offers it")) {
    ++tally_.refused["held by a running container, and offered by the kubelet"];
    return;
  }
  int core = -1;
  const auto at = message.find("core ");
  const auto held = message.find(" is held by ");
  if (at == std::string::npos || held == std::string::npos) return broken("a refusal that names no holder: " + message);
  core = std::stoi(message.substr(at + 5));
  const std::string holder = message.substr(held + 12, message.find(" through ") - held - 12);
  const std::set<std::string> names = truth_->holders_of(core);
  if (names.contains(holder) || (!names.empty() && holder == "a container admitted moments ago")) {
    ++tally_.refused["held by a running container"];
    return;
  }
  std::optional<SteadyTime> ended;  // not running: then it ran, or was refused, a moment ago
  for (const Given& one : given_) {
    if (one.cores.contains(core)) ended = one.ended.value_or(time_.now());
  }
  if (!ended) return broken("a refusal for a core that nobody ever had: " + message);
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(time_.now() - *ended).count();
  tally_.oldest_refusal_ms = std::max<std::int64_t>(tally_.oldest_refusal_ms, age);
  ++tally_.refused["held by a container that has just ended or was refused"];
}

}  // namespace neuron::check
