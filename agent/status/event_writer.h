#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/kube/api.h"
#include "agent/status/node_events.h"
#include "agent/status/node_object.h"

// Events on the Node: pending ones, their rate, and how they are written.
namespace neuron::status {

enum class Since {
  start,  // the first snapshot of a process
  before  // a later one
};

// An event of one subject, once or several times. Passive data.
struct PendingEvent {
  NodeEvent event;  // the last one, merged with those before
  WallTime first{}, last{};
  int times = 1;
  bool only_at_start = false;  // a predecessor of this process may have written it
};

// Events that wait to be written: one entry for each subject, so that a flapping unit only increases a count. Each is
// due at once when it is the first of a unit, then at most once in kSamePause; all of them at most kBurst at once and
// one in kPause on average. Only the times in between are lost. Pure; not synchronised.
class PendingEvents {
 public:
  static constexpr int kBurst = 25;  // as client-go's recorder has it
  static constexpr std::chrono::seconds kPause{30};
  static constexpr std::chrono::seconds kSamePause{60};

  void add(NodeEvent event, WallTime at, Since since);
  void put_back(PendingEvent event);  // it could not be written
  // When take() returns the next one; nullopt: none is pending.
  [[nodiscard]] std::optional<SteadyTime> due() const;
  // One that may be written at `now`; warnings first.
  [[nodiscard]] std::optional<PendingEvent> take(SteadyTime now);

 private:
  using Key = std::pair<std::string, std::string>;  // subject, unit: both from tables, so bounded

  [[nodiscard]] SteadyTime due_of(const NodeEvent& event) const;

  std::map<std::string, PendingEvent> waiting_;  // by subject
  std::map<Key, SteadyTime> again_at_;           // of units with an earlier event
  SteadyTime bucket_full_at_{};                  // when all of kBurst are free again
};

// Writes events as core/v1 Events in the namespace `default`, where those of Nodes have to be. core/v1 and not
// events.k8s.io/v1: `kubectl describe node` shows its count, and a merge patch of `count` needs neither get nor list.
// The name is made of the node's uid and the event's subject, so that a restarted agent writes nothing twice and
// continues its predecessor's count. Not synchronised.
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
  std::map<std::string, std::optional<int>> counts_;  // by name; nullopt: exists, count unknown
};

// "n1.0123456789abcdef". Pure.
[[nodiscard]] std::string event_name(const NodeRef& node, const NodeEvent& event);

}  // namespace neuron::status
