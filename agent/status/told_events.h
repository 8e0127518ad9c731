#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "agent/status/node_apply.h"
#include "agent/status/node_events.h"

// Events on the Node: which wait, when they may go, and how they are written.
namespace neuron::status {

enum class Since {
  start,  // the first snapshot of a process
  before  // a later one
};

// The same subject, once or several times. Passive data.
struct PendingEvent {
  NodeEvent event;  // as it was last
  WallTime first{}, last{};
  int times = 1;
  bool only_at_start = false;  // a predecessor of this process may have written it
};

// Events that wait to be written: one entry for each subject, so that a unit that comes and goes counts up and costs no
// more. Each is due at once if it is news of a unit, then at most once in kSamePause; all of them at most kBurst at
// once and one in kPause on average. Nothing is lost but the times between. Pure; not synchronised.
class EventsToTell {
 public:
  static constexpr int kBurst = 25;  // as client-go's recorder has it
  static constexpr std::chrono::seconds kPause{30};
  static constexpr std::chrono::seconds kSamePause{60};

  void add(NodeEvent event, WallTime at, Since since);
  void put_back(PendingEvent event);  // it could not be written
  // When take() has the next one; nullopt: nothing waits.
  [[nodiscard]] std::optional<SteadyTime> due() const;
  // One that may be written at `now`; warnings first.
  [[nodiscard]] std::optional<PendingEvent> take(SteadyTime now);

 private:
  using Key = std::pair<std::string, std::string>;  // subject, unit: of tables, so of a bounded number

  [[nodiscard]] SteadyTime due_of(const NodeEvent& event) const;

  std::map<std::string, PendingEvent> waiting_;  // by subject
  std::map<Key, SteadyTime> again_at_;           // of units that an event was about
  SteadyTime bucket_full_at_{};                  // when all of kBurst are free again
};

// Writes events as core/v1 Events in the namespace `default`, where those of Nodes have to be. core/v1 and not
// events.k8s.io/v1: `kubectl describe node` counts by it, and a merge patch of `count` needs neither get nor list. The
// name is made of the node's uid and the event's subject, so that a restarted agent writes nothing twice and counts on
// where its predecessor was. Not synchronised.
class EventWriter {
 public:
  EventWriter(kube::Api& api, std::string node) : api_(api), node_(std::move(node)) {}

  // One to three calls. Errors: of the calls; the event is then not written.
  [[nodiscard]] Result<void> write(const PendingEvent& event, const std::string& node_uid);

 private:
  [[nodiscard]] Result<bool> create(const PendingEvent& event, const NodeRef& node, const std::string& name);
  [[nodiscard]] Result<bool> count_up(const PendingEvent& event, const std::string& name);

  kube::Api& api_;
  const std::string node_;
  std::map<std::string, std::optional<int>> counts_;  // by name; nullopt: it is there, its count is not known
};

// "n1.0123456789abcdef": a name as a node's. Pure.
[[nodiscard]] std::string event_name(const NodeRef& node, const NodeEvent& event);

}  // namespace neuron::status
