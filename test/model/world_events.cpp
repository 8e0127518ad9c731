// What happens to the node, at random.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "test/model/world.h"

namespace neuron::check {
namespace {

using model::Resource;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string name(Resource resource) {
  return std::string(model::resource_name(resource));
}

std::string words(const sim::PodSpec& spec) {
  std::string text = spec.name;
  for (const sim::ContainerSpec& container : spec.containers) {
    text += " " + container.name + "{";
    for (const auto& [resource, count] : container.requests) text += fmt::format(" {}:{}", resource, count);
    text += " }";
  }
  return text;
}

}  // namespace

std::optional<std::string> World::run(std::uint64_t events) {
  for (std::uint64_t i = 0; i < events && !broken_; ++i) {
    ++tally_.events;
    event();
    watch_ledger();
  }
  tally_.truth = truth_->counts();
  return broken_;
}

void World::event() {
  if (odds_.restarts > 0 && chance(odds_.restarts)) return chance(75) ? restart_agent() : restart_kubelet();
  const int what = pick(1, 1000);
  if (what <= 330) return admit(random_pod());
  if (what <= 570) return remove_pod();
  if (what <= 700) return time_.advance(soon(50, 20000));
  if (what <= 790) return time_.advance(milliseconds(pick(100, 600)));
  if (what <= 850) return time_.advance(milliseconds(pick(600, 4000)));
  if (what <= 870) return time_.advance(milliseconds(pick(4000, 15000)));
  if (what <= 920) return set_health();
  if (what <= 950) return restart_agent();
  if (what <= 965) return restart_kubelet();
  if (what <= 980) return foreign_list();
  if (what <= 990) return foreign_plugin();
  settle();
}

// In the window of one RPC the kubelet's lock is free, and anything may happen.
void World::in_flight(AdmissionStep step) {
  time_.advance(soon(20, 900));
  if (!chance(calm_ ? 3 : 14)) return;
  ++tally_.in_flight_events;
  const int what = pick(1, 100);
  if (what <= 20) return calm_ ? void() : foreign_list();
  if (what <= 25) return foreign_plugin();
  if (what <= 50) return remove_pod();
  if (what <= 60) return set_health();
  // An answer of ours is with the kubelet soon; the next question may be long in coming.
  const bool may_stall = !calm_ && !settling_ && step == AdmissionStep::before_preferred;
  if (what <= 89 || (what <= 92 && !may_stall)) {
    return time_.advance(milliseconds(pick(5, 450)));  // twice as long, and the admission would count as stalled
  }
  if (what <= 92) {  // another vendor's plugin, which takes its time
    stalled_ = true;
    return time_.advance(milliseconds(pick(900, 3500)));
  }
  if (what <= 97) return restart_agent();
  restart_kubelet();
}

void World::remove_pod() {
  if (pods_.empty()) return;
  const auto which = static_cast<std::size_t>(pick(0, static_cast<int>(pods_.size()) - 1));
  const std::string pod = pods_[which];
  pods_.erase(pods_.begin() + static_cast<std::ptrdiff_t>(which));
  say("pod ends: " + pod);
  static_cast<void>(kubelet_->remove("default", pod));
  truth_->end(pod);
  for (Given& one : given_) {
    if (one.pod == pod) one.ended = time_.now();
  }
}

void World::admit(const sim::PodSpec& spec) {
  if (!kubelet_up_) return;
  if (trace_) say("pod is admitted: " + words(spec));
  admitting_ = spec.name;
  stalled_ = time_.now() < disturbed_until_;
  const auto result = kubelet_->admit(spec);
  admitting_.clear();
  if (!result) {
    say("  " + result.error().message);
    for (Given& one : given_) {
      if (one.pod == spec.name) one.ended = time_.now();
    }
    return check_refusal(spec, result.error().message);
  }
  ++tally_.admitted;
  for (const sim::ContainerGrant& grant : result->containers) {
    tally_.admitted_both += static_cast<std::uint64_t>(grant.ids.contains(name(Resource::neuron)) &&
                                                       grant.ids.contains(name(Resource::neuroncore)));
  }
  pods_.push_back(spec.name);
  if (const auto wrong = truth_->start(spec, *result, stalled_ ? Truth::Answers::may_differ : Truth::Answers::one))
    return broken(*wrong);
  constexpr std::size_t kRemembered = 400;
  if (given_.size() > kRemembered) {
    std::erase_if(given_, [&](const Given& one) { return one.ended && time_.now() - *one.ended > seconds(120); });
  }
}

std::map<std::string, int> World::random_requests() {
  const int devices = static_cast<int>(node_->units(Resource::neuron).size());
  const int each = node_->topology().cores_per_device;
  const auto size = [&](int most) { return std::min(chance(85) ? pick(1, 4) : pick(1, most), most); };
  std::map<std::string, int> requests;
  int what = pick(1, 100);
  if (chance(85)) {  // people mostly ask for what the node offers
    if (!offer_.serves(Resource::neuron)) what = 50;
    if (!offer_.serves(Resource::neuroncore)) what = 20;
    if (offer_.split && what > 70) what -= 35;
  }
  const int count = size(devices);
  const std::string& devices_name = neurondevice_ && chance(30) ? name(Resource::neurondevice) : name(Resource::neuron);
  if (what <= 35) {
    requests[devices_name] = count;
  } else if (what <= 70) {
    requests[name(Resource::neuroncore)] = chance(50) ? count * each : size(devices * each);
  } else if (what <= 88) {
    requests[devices_name] = count;
    requests[name(Resource::neuroncore)] = count * each;
    if (neurondevice_ && chance(10)) requests[name(Resource::neuron)] = count;
  } else if (what <= 92) {
    requests[devices_name] = count;
    requests[name(Resource::neuroncore)] = size(devices * each);
  }
  const int efas = static_cast<int>(node_->units(Resource::efa).size());
  if (efas > 0 && chance(35)) requests[name(Resource::efa)] = size(efas);
  if (chance(3)) requests[name(Resource::neuroncore)] = 0;
  if (efas > 0 && chance(4)) requests[name(Resource::efa)] = efas + 1;  // refused by the kubelet, perhaps half-way
  return requests;
}

sim::PodSpec World::random_pod() {
  sim::PodSpec pod;
  pod.name = "pod" + std::to_string(next_pod_++);
  const int containers = chance(65) ? 1 : pick(2, 4);
  for (int i = 0; i < containers; ++i) {
    sim::ContainerSpec container;
    container.name = "c" + std::to_string(i);
    if (containers > 1 && i + 1 < containers && chance(45)) {
      container.kind = chance(75) ? sim::ContainerKind::init : sim::ContainerKind::restartable_init;
    }
    container.requests = random_requests();
    if (i > 0 && chance(30)) container.requests = pod.containers.back().requests;
    pod.containers.push_back(std::move(container));
  }
  return pod;
}

// Everything comes to rest; then the lists must be exact and what fits must be given.
void World::settle() {
  settling_ = true;
  for (int i = 0; i < 8; ++i) time_.advance(seconds(5));
  say("quiet");
  ++tally_.settled;
  check_ledger("on a quiet node");
  check_lists();
  if (!broken_) end_one_and_look();
  if (!broken_) probe();
  settling_ = false;
}

// What a pod held, its init containers included, is offered through every name a second after its end.
void World::end_one_and_look() {
  if (pods_.empty() || !kubelet_up_ || !agent_) return;
  remove_pod();
  time_.advance(seconds(1));
  say("a second later");
  check_lists();
}

int World::free_units(Resource resource) {
  const auto views = kubelet_->resources();
  const auto found = views.find(name(resource));
  if (found == views.end()) return 0;
  std::set<std::string> taken;
  for (const sim::PodView& pod : kubelet_->pods()) {
    for (const auto& container : pod.containers) {
      for (const auto& device : container.devices) {
        if (device.resource == name(resource)) taken.insert(device.id);
      }
    }
  }
  return static_cast<int>(std::count_if(found->second.healthy.begin(), found->second.healthy.end(),
                                        [&](const std::string& id) { return !taken.contains(id); }));
}

void World::probe() {
  if (!kubelet_up_ || !agent_) return;
  const Resource resource =
      std::array{Resource::neuron, Resource::neuroncore, Resource::efa}.at(static_cast<std::size_t>(pick(0, 2)));
  kubelet_->update_allocated();
  const int free = free_units(resource);
  if (free == 0) return;
  sim::PodSpec pod;
  pod.name = "probe" + std::to_string(next_pod_++);
  pod.containers.push_back({"main", sim::ContainerKind::app, {{name(resource), pick(1, free)}}, {}, std::nullopt});
  const std::uint64_t admitted = tally_.admitted;
  const std::uint64_t starts = tally_.agent_starts + tally_.kubelet_starts;
  const std::uint64_t disturbed = tally_.in_flight_events;
  admit(pod);
  if (tally_.admitted > admitted || tally_.in_flight_events != disturbed || !agent_ ||
      starts != tally_.agent_starts + tally_.kubelet_starts) {
    return;
  }
  const auto locality = tally_.refused.find("kubelet or health: Topology locality");
  if (locality != tally_.refused.end()) return;  // a NUMA policy may refuse what fits
  broken(fmt::format("quiet node: a pod that fits was refused: {} of {} free", words(pod), free));
}

}  // namespace neuron::check
