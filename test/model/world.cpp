#include "test/model/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "test/unit/grant/nodes.h"

namespace neuron::check {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kTraceLines = 300;
constexpr milliseconds kListDeadline{2000};  // as in plugin/device/kubelet_link.cpp

constexpr std::array<const char*, 5> kTypes = {"trn1.32xlarge", "trn1.32xlarge", "trn2.48xlarge", "inf2.48xlarge",
                                               "trn1.2xlarge"};

std::vector<model::Allocation> as_listed(const std::vector<sim::PodView>& pods) {
  std::vector<model::Allocation> all;
  for (const sim::PodView& pod : pods) {
    const std::size_t before = all.size();
    for (const sim::ContainerView& container : pod.containers) {
      if (container.kind == sim::ContainerKind::init) continue;
      std::map<std::string, std::set<std::string>> ids;
      for (const auto& device : container.devices) ids[device.resource].insert(device.id);
      for (const auto& [resource, set] : ids) {
        all.push_back({pod.ns, pod.name, container.name, resource, {set.begin(), set.end()}});
      }
    }
    if (all.size() == before) all.push_back({pod.ns, pod.name, "", "", {}});
  }
  return all;
}

}  // namespace

void Tally::add(const Tally& other) {
  events += other.events;
  in_flight_events += other.in_flight_events;
  admitted += other.admitted;
  admitted_both += other.admitted_both;
  settled += other.settled;
  agent_starts += other.agent_starts;
  kubelet_starts += other.kubelet_starts;
  late_writes += other.late_writes;
  for (const auto& [kind, count] : other.offers) offers[kind] += count;
  for (const auto& [kind, count] : other.refused) refused[kind] += count;
  ledger_gaps += other.ledger_gaps;
  longest_gap_ms = std::max(longest_gap_ms, other.longest_gap_ms);
  oldest_refusal_ms = std::max(oldest_refusal_ms, other.oldest_refusal_ms);
  truth.containers += other.truth.containers;
  truth.double_given += other.truth.double_given;
  truth.forgotten += other.truth.forgotten;
}

World::World(std::uint64_t seed, bool trace, Odds odds)
    : random_(seed),
      odds_(odds),
      trace_(trace),
      checkpoint_path_("checkpoint"),
      checkpoint_(checkpoint_path_, time_, [this](const sim::Checkpoint& content) { return keep_write(content); }) {
  instance_type_ = kTypes.at(static_cast<std::size_t>(pick(0, static_cast<int>(kTypes.size()) - 1)));
  calm_ = chance(40);
  neurondevice_ = chance(40);
  if (chance(50)) response_.numbering = grant::CoreNumbering::host;
  snapshot_ = snapshot_of(instance_type_);
  node_ = std::make_shared<const grant::NodeUnits>(std::make_shared<const model::Snapshot>(*snapshot_));
  truth_ = std::make_unique<Truth>(node_, response_.numbering == grant::CoreNumbering::host);
  sim::KubeletOptions options;
  options.seed = static_cast<unsigned>(seed);
  options.numa_policy = static_cast<sim::NumaPolicy>(chance(60) ? 0 : pick(1, 2));
  watch_admissions([this](AdmissionStep step) { in_flight(step); });
  kubelet_ = std::make_unique<sim::DeviceManager>(std::move(options), checkpoint_path_);
  say(fmt::format("node {} calm={} neurondevice={}", instance_type_, calm_, neurondevice_));
  start_agent();
  time_.advance(milliseconds(100));
}

World::~World() {
  watch_admissions(nullptr);
}

void World::say(const std::string& line) {
  if (!trace_) return;
  const auto at = std::chrono::duration_cast<microseconds>(time_.now().time_since_epoch()).count();
  trace_lines_.push_back(fmt::format("{:>5} {:>12.3f} ms  {}", tally_.events, static_cast<double>(at) / 1000.0, line));
  if (trace_lines_.size() > kTraceLines) trace_lines_.pop_front();
}

AgentWorld World::agent_world() {
  return {time_,
          checkpoint_,
          response_,
          offer_,
          [this](AgentWorld::Listed answer) { list(std::move(answer)); },
          [this](model::Resource resource, const plugin::UnitListPtr& units) { send(resource, units); },
          [this](model::Resource resource, const std::string& path) {
            if (!kubelet_up_) return false;
            // An init container that the checkpoint lacks is shown nowhere before the first list makes the kubelet
            // write.
            if (!file_is_old_ && std::exchange(checked_life_, agent_life_) != agent_life_) {
              check_ledger("before the first answer");
            }
            const std::string name(model::resource_name(resource));
            say("agent registers " + name);
            kubelet_->plugin_connected(name, std::make_shared<sim::PluginClient>(name, path), {true, true});
            return true;
          },
          [this] { return kubelet_up_ ? kubelet_life_ + 1 : 0; },
          [this] { return static_cast<int>(std::exchange(events_waiting_, 0)); },
          [this](model::Resource resource, const std::vector<std::string>& ids) {
            if (trace_) say(fmt::format("  agent gives {} {}", model::resource_name(resource), fmt::join(ids, ",")));
            if (std::exchange(checked_life_, agent_life_) != agent_life_) check_ledger("at the first answer");
            truth_->passed(admitting_, std::string(model::resource_name(resource)), ids);
            Given one{time_.now(), admitting_, {}, std::nullopt};
            for (const std::string& id : ids) {
              if (const auto unit = node_->unit_of(resource, id))
                one.cores.merge([&] {
                  const auto cores = node_->cores_of(resource, *unit);
                  return std::set<int>(cores.begin(), cores.end());
                }());
            }
            if (!one.cores.empty()) given_.push_back(std::move(one));
          }};
}

// Another manifest may come with another start.
void World::choose_offer() {
  if (tally_.agent_starts > 0 && chance(60)) return;
  using model::Resource;
  offer_ = {};
  const int what = pick(1, 100);
  const char* kind = "both names";
  if (what > 75) {
    kind = "one name";
    offer_.resources = {chance(50) ? Resource::neuron : Resource::neuroncore, Resource::efa};
  } else if (what > 40) {
    kind = "a split";
    offer_.split.emplace();
    for (const int device : node_->units(Resource::neuron)) {
      if (chance(40)) offer_.split->listed.push_back(device);
    }
  }
  if (!neurondevice_) std::erase(offer_.resources, Resource::neurondevice);
  ++tally_.offers[kind];
  say(fmt::format("offers {}, core devices {}", core::format_resource_list(offer_.resources),
                  core::format_core_devices(offer_.split)));
}

void World::start_agent() {
  choose_offer();
  ++tally_.agent_starts;
  ++agent_life_;
  started_on_old_file_ = file_is_old_;
  say("agent starts");
  agent_ = std::make_shared<ModelAgent>(agent_world(), "agent" + std::to_string(agent_life_));
  const bool scanned = chance(50);
  agent_->start(scanned ? node_ : nullptr);
  if (scanned) return;
  time_.after(soon(200, 30000), [this, agent = agent_life_] {
    if (agent_ && agent == agent_life_) agent_->set_node(node_);
  });
}

void World::stop_agent() {
  if (!agent_) return;
  say("agent is killed");
  agent_.reset();
  if (!kubelet_up_) return;
  for (const model::Resource resource : model::kAllResources) {
    kubelet_->plugin_disconnected(std::string(model::resource_name(resource)));
  }
}

void World::restart_agent() {
  stop_agent();
  time_.after(soon(3000, 3000000), [this] {
    if (!agent_) start_agent();
  });
}

void World::restart_kubelet() {
  if (!kubelet_up_) return;
  say("kubelet is killed");
  ++tally_.kubelet_starts;
  ++kubelet_life_;
  kubelet_up_ = false;
  kubelet_->forget();
  if (agent_) agent_->kubelet_died();
  time_.after(soon(50, 20000), [this, agent = agent_life_] {
    if (agent_ && agent == agent_life_) agent_->streams_end();
  });
  time_.after(soon(50000, 3000000), [this] {
    kubelet_->restore();
    kubelet_up_ = true;
    truth_->keep_known(kubelet_->pods());
    say("kubelet is back");
    if (agent_) agent_->kubelet_appeared();
    time_.after(soon(500, 20000), [this] {
      if (agent_) agent_->wake();
    });
  });
}

void World::list(AgentWorld::Listed answer) {
  const auto there = soon(200, chance(10) && !settling_ ? 1500000 : 3000);
  const auto back = soon(200, chance(10) && !settling_ ? 1500000 : 3000);
  const bool fails = !settling_ && chance(3);
  time_.after(there, [this, there, back, fails, answer = std::move(answer)] {
    const bool late = there + back > kListDeadline;
    Result<std::vector<model::Allocation>> result = fail(ErrorCode::unavailable, "nobody answers");
    if (kubelet_up_ && !fails) {
      say("kubelet answers the agent's List");
      kubelet_->update_allocated();
      if (!late) result = as_listed(kubelet_->pods());
    }
    time_.after(late ? kListDeadline - there : back, [answer, result = std::move(result)] { answer(result); });
  });
}

void World::send(model::Resource resource, const plugin::UnitListPtr& list) {
  last_delivery_ = std::max(last_delivery_, time_.now() + soon(100, 3000));
  time_.after(last_delivery_ - time_.now(), [this, resource, list, kubelet = kubelet_life_, agent = agent_life_] {
    if (kubelet != kubelet_life_ || agent != agent_life_ || !agent_ || !kubelet_up_) return;
    v1beta1::ListAndWatchResponse message;
    for (const plugin::UnitState& unit : *list) {
      v1beta1::Device* device = message.add_devices();
      device->set_id(unit.id);
      device->set_health(unit.healthy ? "Healthy" : "Unhealthy");
      for (const int node : unit.numa_nodes) device->mutable_topology()->add_nodes()->set_id(node);
    }
    say(fmt::format("list of {} reaches the kubelet", model::resource_name(resource)));
    check_nothing_leaves(resource, *list);
    in_list_and_watch_ = true;
    kubelet_->plugin_updated(std::string(model::resource_name(resource)), message);
    in_list_and_watch_ = false;
  });
}

// A write after a container is part of the admission; one after a ListAndWatch message may be overtaken.
bool World::keep_write(const sim::Checkpoint& content) {
  if (!in_list_and_watch_ || calm_ || settling_ || late_on_its_way_ || !chance(odds_.late)) {
    say(in_list_and_watch_ ? "  checkpoint written" : "  checkpoint written after a container");
    file_is_old_ = false;
    time_.after(milliseconds(100), [this, life = agent_life_] {  // the lists made before it are out by then
      if (life == agent_life_) started_on_old_file_ = false;
    });
    checkpoint_landed();
    return true;
  }
  say("  checkpoint: a slow write begins");
  ++tally_.late_writes;
  late_on_its_way_ = true;
  const auto delay = soon(500, 400000);
  // The file's time is that of its writing, which a disk may take long to finish: at any time until it lands.
  const SteadyTime written_at = time_.now() + delay * (delay / microseconds(1) % 5) / 4;
  time_.after(delay,
              [this, content, written_at, life = kubelet_life_, foreign = of_another_plugin_, agent = agent_life_] {
                late_on_its_way_ = false;
                if (life != kubelet_life_) return;
                say("checkpoint: the slow write lands");
                if (foreign || agent != agent_life_) disturb();
                file_is_old_ = true;
                checkpoint_.land(content, written_at);
                checkpoint_landed();
              });
  return false;
}

// A write for a list that the agent did not send: it is taken for the write of one that it did, whose own write then
// lands in mid-admission (docs/adr/0006-admission-gate.md).
void World::disturb() {
  disturbed_until_ = time_.now() + milliseconds(1500);
  stalled_ = true;
}

void World::checkpoint_landed() {
  ++events_waiting_;
  time_.after(soon(50, 8000), [this] {
    if (agent_ && events_waiting_ > 0) agent_->wake();
  });
}

void World::foreign_list() {
  if (!kubelet_up_) return;
  say("somebody else calls List");
  kubelet_->update_allocated();
}

// The list of another vendor's plugin has changed, for which the kubelet writes its checkpoint as well.
void World::foreign_plugin() {
  if (!kubelet_up_ || calm_) return;
  say("list of another vendor's plugin reaches the kubelet");
  v1beta1::ListAndWatchResponse message;
  for (const char* id : {"a", "b", "c"}) {
    v1beta1::Device* device = message.add_devices();
    device->set_id(id);
    device->set_health(chance(50) ? "Healthy" : "Unhealthy");
  }
  disturb();
  in_list_and_watch_ = of_another_plugin_ = true;
  kubelet_->plugin_updated("vendor.example/accelerator", message);
  in_list_and_watch_ = of_another_plugin_ = false;
}

void World::set_health() {
  model::HostScan& host = snapshot_->host;
  const bool of_device = chance(75) || host.efas.empty();
  const std::size_t count = of_device ? host.devices.size() : host.efas.size();
  const auto which = static_cast<std::size_t>(pick(0, static_cast<int>(count) - 1));
  model::Health& health = of_device ? host.devices[which].health : host.efas[which].health;
  const bool was_healthy = health.state == model::HealthState::healthy;
  health.state = was_healthy ? model::HealthState::unhealthy : model::HealthState::healthy;
  health.sentence = was_healthy ? "it failed in the model" : "";
  ++snapshot_->number;
  ++snapshot_->generation;
  node_ = std::make_shared<const grant::NodeUnits>(std::make_shared<const model::Snapshot>(*snapshot_));
  say(fmt::format("{} {} is {}", of_device ? "neuron" : "efa", which, was_healthy ? "broken" : "well again"));
  if (agent_) agent_->set_node(node_);
}

}  // namespace neuron::check
