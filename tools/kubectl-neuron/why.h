#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/kubectl-neuron/fit.h"

// Why a pod waits, was refused or is badly placed, and the smallest changes that would let it in. Pure.
namespace neuron::fleet {

enum class PodState : std::uint8_t {
  waiting,   // Pending, on no node
  starting,  // on a node, not running yet
  running,
  refused,  // the kubelet or the agent rejected it; final for this pod
  ended,
  ending,  // deleted, not gone yet
};
[[nodiscard]] PodState state_of(const Pod& pod);

// Meaning of a message of the scheduler, the kubelet or the agent. Passive data.
struct Explanation {
  std::string said;         // as it came, bounded
  std::string meaning;      // a sentence; "": not known
  std::string advice;       // what to do; "" nothing
  int nodes = 0;            // of the scheduler: for so many nodes; 0: not said
  bool of_hardware = true;  // false: about processor time, volumes or other things that are not checked here
  bool is_past = false;     // what it says there is too little of was counted, and is enough where the pod fits now
};

// The last message of the scheduler, part by part: "0/3 nodes are available: 1 Insufficient …, 2 node(s) had …".
[[nodiscard]] std::vector<Explanation> explain_scheduler(std::string_view message);
// A message of the kubelet, the runtime or the agent: of the pod's status or an event. nullopt: not known.
[[nodiscard]] std::optional<Explanation> explain_message(std::string_view message);

// Texts by which messages are recognized.
[[nodiscard]] std::vector<std::string_view> texts_of_tables();
// Whether to advise that a pod tolerates it: not those of a node that is unhealthy or starts, or that an
// autoscaler removes.
[[nodiscard]] bool may_be_tolerated(std::string_view taint);

// One step that lets the pod in, proved by fit() on a changed copy. Passive data.
struct Change {
  enum class Kind : std::uint8_t {
    pods_ended,  // pods: at most 16, on `node`
    pod_moved,   // pods: one, from `node` to `to`, where it fits
    uncordon,    // node
    tolerate,    // value: the taint
    gate_removed,
    default_scheduler,
    other_lnc,        // node, value: the LNC
    claim_not_count,  // node serves claims
    count_not_claim,  // node has a device plugin
    fewer,            // value: how many of `resource` would fit
  };
  Kind kind = Kind::pods_ended;
  std::vector<std::string> pods;  // "namespace/name"
  std::vector<bool> leaving;      // which of `pods` are being deleted
  std::string node;               // where the pod then fits
  std::string to;
  std::string resource;
  std::string value;
  std::string refused_on;  // another node that the scheduler may choose then, whose agent refuses the pod; "": none
  bool exactly = false;    // fewer: of this number it was proved, of smaller ones not
  int nodes = 1;           // on how many it was proved that it then fits; node is the first
  friend bool operator==(const Change&, const Change&) = default;
};
[[nodiscard]] std::string_view to_string(Change::Kind kind);
[[nodiscard]] std::string words_of(const Change& change);

struct Changes {
  std::vector<Change> found;  // at most ten
  bool all_tried = true;      // false: too many candidates, or the effort was over
  std::set<Change::Kind> tried;
};
// The smallest changes: those to nodes and to the pod itself, then pods moved, pods ended.
[[nodiscard]] Changes changes_for(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states,
                                  const std::vector<Verdict>& verdicts, Effort* effort = nullptr);
// Carries a change out: on the pod, its templates and classes (`rules`), and those states that it names. False: it does
// not apply. Otherwise fit() decides whether the pod fits on `change.node`.
[[nodiscard]] bool apply(const Change& change, Fleet& rules, Pod& pod, std::vector<NodeState>& states,
                         Effort* effort = nullptr);
// Devices that the pod's one claim asks for; 0: it has none, another form, or is allocated.
[[nodiscard]] std::int64_t devices_in_claim(const Fleet& rules, const Pod& pod);
// Whether a pod may move there: to a node with hardware, or for one without to a node that lists all that it asks for.
[[nodiscard]] bool may_take(const NodeState& to, const Pod& pod);
// The fleet without nodes and pools, and with those pods alone that have the same schedulerName, where it is not
// the default.
[[nodiscard]] Fleet rules_for(const Fleet& fleet, const Pod& pod);

// Changes tried on copies of the nodes that they name, until there were kMost or the effort has ended. Fleet, pod and
// states have to outlive it.
class Trials {
 public:
  static constexpr int kMost = 5000;

  Trials(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states, Effort* effort);
  // Whether the pod fits on `change.node` after it; unknown: it cannot be said, or it was not tried.
  [[nodiscard]] Answer outcome(const Change& change);
  [[nodiscard]] bool proves(const Change& change) { return outcome(change) == Answer::yes; }
  // A node, of those with an obstacle of that kind now, whose agent refuses the pod after it; "": none is known.
  [[nodiscard]] std::string refused_on(const Change& change, const std::vector<Verdict>& verdicts);
  void leave_off() { all_tried_ = false; }  // the caller does not try all candidates
  [[nodiscard]] bool all_tried() const { return all_tried_; }
  [[nodiscard]] int left() const { return left_; }  // negative: some were not tried
  [[nodiscard]] const std::set<Change::Kind>& tried() const { return tried_; }

 private:
  Answer fit_after(const Change& change);
  [[nodiscard]] std::vector<NodeState> copies_for(const Change& change) const;

  const Pod& pod_;
  const std::vector<NodeState>& states_;
  Fleet rules_;
  Effort* effort_;
  std::set<Change::Kind> tried_;
  int left_ = kMost;
  bool all_tried_ = true;
};
// Those that end or move pods: at most five moves and five ends, the fewest and smallest pods.
[[nodiscard]] std::vector<Change> changes_of_pods(const Fleet& fleet, const Pod& pod,
                                                  const std::vector<NodeState>& states,
                                                  const std::vector<Verdict>& verdicts, Trials& trials);

struct Why;
// A message of the kubelet or the runtime about a pod. Passive data.
struct Said {
  std::string text;         // "container main: ImagePullBackOff: …", "FailedMount: …"
  std::string container;    // in the pod's status; "": of the pod, or an event
  bool as_it_came = false;  // to be shown also where its meaning is not known
};
// Explains a pod on a node: whether it runs, what keeps it or one of its containers from running, and its hardware.
void explain_placed(const Fleet& fleet, const Pod& pod, const std::vector<Said>& said, Why& why);
inline constexpr const char* kPreviousLogs = "kubectl logs --previous";  // an advice, to be completed for the pod

// How near to each other the hardware of a running container is. Passive data.
struct Placement {
  std::string container;
  std::vector<int> devices;
  std::string shape;                // "set of 2, not connected"
  std::optional<int> hops;          // sum over all pairs; nullopt: one device, or behind a switch
  std::optional<int> best_hops;     // of the nearest set of an empty node of its kind
  std::optional<int> near_efas;     // interfaces nearest to its devices
  std::optional<int> best_efas;     // that could be
  std::vector<int> better;          // devices that are free now and nearer
  std::vector<std::string> faults;  // "neuron3 is unhealthy: …"
  [[nodiscard]] bool is_good() const;
};
// nullopt: the node's agent has not answered, or not with its pods.
[[nodiscard]] std::optional<std::vector<Placement>> placements_of(const Pod& pod, const Node& node);

struct Why {
  std::string pod;
  PodState state = PodState::waiting;
  Answer answer = Answer::unknown;    // yes: it runs or could run now
  std::string summary;                // one sentence
  std::string node;                   // where it is, or ""
  std::vector<Explanation> messages;  // of the kubelet, runtime and agent
  std::vector<Explanation> scheduler;
  std::vector<std::string> notes;  // other sentences: what would never fit, what was not read
  std::vector<NodeGroup> nodes;
  std::vector<Change> changes;
  bool all_tried = true;                 // of the changes
  std::set<Change::Kind> tried;          // kinds of them, also in vain
  std::vector<std::string> not_counted;  // rules and resources that could keep it off, and are not checked
  bool as_counted = false;               // of the changes: that, or what the scheduler names besides, stays
  std::optional<std::vector<Placement>> placements;
};
[[nodiscard]] Why why(const Fleet& fleet, const Pod& pod, Effort* effort = nullptr);

[[nodiscard]] std::string why_text(const Why& why);
[[nodiscard]] std::string why_json(const Why& why);  // format "kubectl-neuron-why/1"
[[nodiscard]] int exit_status(const Why& why);       // 0 runs or could run now, 1 cannot, 2 cannot tell

}  // namespace neuron::fleet
