#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "agent/model/snapshot.h"
#include "test/model/model_agent.h"
#include "test/model/paths.h"
#include "test/model/timeline.h"
#include "test/model/truth.h"
#include "tools/neuron-sim/kubelet/device_manager.h"

namespace neuron::check {

// How often what happened; summed over the runs.
struct Tally {
  std::uint64_t events = 0, in_flight_events = 0, admitted = 0, admitted_both = 0, settled = 0, agent_starts = 0,
                kubelet_starts = 0, late_writes = 0;
  std::map<std::string, std::uint64_t> refused;  // by kind of reason
  std::map<std::string, std::uint64_t> offers;   // agents started with both names, one, or a split
  std::uint64_t ledger_gaps = 0;                 // moments at which the agent did not know of a running container
  std::int64_t longest_gap_ms = 0;
  std::int64_t oldest_refusal_ms = 0;  // a refusal for a holder that had ended: the longest time since
  Truth::Counts truth;
  void add(const Tally& other);
};

// One node under random events: the kubelet's device manager, an agent, pods. Everything follows from the seed.
class World {
 public:
  // In percent. `late`: ListAndWatch messages whose checkpoint write lands late, unless the node is calm. `restarts`:
  // events that are a restart of agent or kubelet, beside the usual share.
  struct Odds {
    int late = 4;
    int restarts = 0;
  };
  // `trace`: keep what happened, in words.
  World(std::uint64_t seed, bool trace, Odds odds);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Lets `events` happen, checking the rules after each. The broken rule, or nullopt.
  [[nodiscard]] std::optional<std::string> run(std::uint64_t events);
  [[nodiscard]] const std::deque<std::string>& trace() const { return trace_lines_; }
  [[nodiscard]] const Tally& tally() const { return tally_; }

 private:
  struct Given {  // an answer for cores or devices
    SteadyTime at;
    std::string pod;
    std::set<int> cores;
    std::optional<SteadyTime> ended;
  };

  // world.cpp: the wiring
  [[nodiscard]] AgentWorld agent_world();
  void start_agent();
  void stop_agent();
  void restart_agent();
  void restart_kubelet();
  void list(AgentWorld::Listed answer);
  void send(model::Resource resource, const plugin::UnitListPtr& list);
  [[nodiscard]] bool keep_write(const sim::Checkpoint& content);
  void checkpoint_landed();
  void foreign_list();
  void foreign_plugin();
  void disturb();
  void set_health();
  void choose_offer();

  // world_events.cpp: what happens
  void event();
  void admit(const sim::PodSpec& spec);
  void remove_pod();
  void in_flight(AdmissionStep step);
  void settle();
  void end_one_and_look();
  void probe();
  [[nodiscard]] sim::PodSpec random_pod();
  [[nodiscard]] std::map<std::string, int> random_requests();
  [[nodiscard]] int free_units(model::Resource resource);

  // world_checks.cpp: the rules
  [[nodiscard]] std::optional<std::string> ledger_gap() const;
  void watch_ledger();
  void check_ledger(const std::string& when);
  void check_lists();
  void check_list(model::Resource resource);
  void check_nothing_leaves(model::Resource resource, const plugin::UnitList& list);
  void check_refusal(const sim::PodSpec& spec, const std::string& message);
  void broken(const std::string& what);

  [[nodiscard]] int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  [[nodiscard]] bool chance(int percent) { return pick(1, 100) <= percent; }
  [[nodiscard]] SteadyTime::duration soon(int low_us, int high_us) { return microseconds(pick(low_us, high_us)); }
  void say(const std::string& line);

  std::mt19937_64 random_;
  const Odds odds_;
  bool trace_;
  std::deque<std::string> trace_lines_;
  std::optional<std::string> broken_;
  Tally tally_;

  std::string instance_type_;
  bool calm_ = false;  // nothing strange in mid-admission: no other callers of List, no late writes
  bool neurondevice_ = false;
  bool settling_ = false;    // nothing fails
  core::OfferPolicy offer_;  // of the agent that runs, or ran last
  grant::GrantOptions response_;
  std::shared_ptr<model::Snapshot> snapshot_;
  grant::NodeUnitsPtr node_;
  Timeline time_;
  std::string checkpoint_path_;
  CheckpointFile checkpoint_;
  std::unique_ptr<sim::DeviceManager> kubelet_;
  std::unique_ptr<Truth> truth_;
  std::shared_ptr<ModelAgent> agent_;
  bool kubelet_up_ = true;
  bool in_list_and_watch_ = false;
  bool of_another_plugin_ = false;    // that message
  bool late_on_its_way_ = false;      // a late write: one at a time
  bool file_is_old_ = false;          // the write that landed last was late
  bool started_on_old_file_ = false;  // the agent that runs; until a write in order has landed
  SteadyTime disturbed_until_{};      // writes may be taken for those of other lists
  std::uint64_t kubelet_life_ = 0, agent_life_ = 0, checked_life_ = 0;
  SteadyTime last_delivery_{};
  std::uint64_t events_waiting_ = 0;  // of inotify: the checkpoint was written
  std::uint64_t next_pod_ = 1;
  std::vector<std::string> pods_;
  std::string admitting_;
  bool stalled_ = false;  // that admission took longer than the agent believes in
  std::vector<Given> given_;
  std::optional<SteadyTime> gap_since_;
};

}  // namespace neuron::check
