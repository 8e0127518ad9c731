#include "tools/kubectl-neuron/why.h"

#include <algorithm>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::fleet {
namespace {

using Kind = Obstacle::Kind;

constexpr std::size_t kMostMessages = 6;

bool is_rejection(const Pod& pod) {
  return pod.phase == "Failed" && (pod.reason == "UnexpectedAdmissionError" || pod.reason == "TopologyAffinityError" ||
                                   pod.reason.starts_with("OutOf") || pod.message.starts_with("Pod was rejected"));
}

// Not about a predecessor of the same name. The kubelet's events about a static pod have another uid than the pod.
bool is_about(const Event& event, const Pod& pod) {
  const bool is_named =
      event.object_kind == "Pod" && event.object_namespace == pod.pod_namespace && event.object_name == pod.name;
  const bool is_comparable = !event.object_uid.empty() && !pod.uid.empty() && !pod.stays;
  return is_named && (!is_comparable || event.object_uid == pod.uid);
}

std::string joined(const std::string& reason, const std::string& message) {
  return reason + (reason.empty() || message.empty() ? "" : ": ") + message;
}

// Nothing keeps a container with such a reason from running, unless the message says so.
bool is_usual(const ContainerWait& wait) {
  const bool is_named = !wait.reason.empty() && wait.reason != "ContainerCreating" && wait.reason != "PodInitializing";
  return !is_named && wait.message.empty();
}

// The pod's status, then events by others than the scheduler, newest first; each message once.
std::vector<Said> messages_of(const Fleet& fleet, const Pod& pod) {
  std::vector<const Event*> events;
  for (const Event& event : fleet.events) {
    if (is_about(event, pod) && event.reason != "FailedScheduling") events.push_back(&event);
  }
  std::ranges::stable_sort(events, std::greater<>(), [](const Event* event) { return event->time; });
  std::vector<Said> all;
  if (const std::string own = joined(pod.reason, pod.message); !own.empty()) all.push_back({own, "", true});
  for (const ContainerWait& wait : pod.waits) {
    const std::string text = "container " + wait.container + ": " + joined(wait.reason, wait.message);
    all.push_back({text, wait.container, !is_usual(wait)});
  }
  for (const Event* event : events) {
    const bool known = std::ranges::any_of(all, [&](const Said& one) {
      return !event->message.empty() && one.text.find(event->message) != std::string::npos;
    });
    const bool is_failure = event == events.front() && event->reason.starts_with("Failed");
    if (!known) all.push_back({joined(event->reason, event->message), "", is_failure});
  }
  return all;
}

// The command that shows why a container ended: an event names it in its message.
std::string logs_command(const Pod& pod, const Said& said) {
  std::string container = said.container;
  for (const Container& one : pod.containers) {
    const bool is_named = said.text.find("container " + one.name + " ") != std::string::npos ||
                          said.text.find("container=" + one.name) != std::string::npos;
    if (container.empty() && is_named) container = one.name;
  }
  return "kubectl logs -n " + printable(pod.pod_namespace) + " " + printable(pod.name) +
         (container.empty() ? "" : " -c " + printable(container)) + " --previous";
}

std::optional<Explanation> explained(const Pod& pod, const Said& said) {
  auto one = explain_message(said.text);
  if (!one && said.as_it_came) return Explanation{printable(said.text, 400), "", "", 0, false};
  if (one && one->advice == kPreviousLogs) one->advice = logs_command(pod, said);
  return one;
}

std::string scheduler_message(const Fleet& fleet, const Pod& pod) {
  if (!pod.scheduled_message.empty()) return pod.scheduled_message;
  std::string newest, message;
  for (const Event& event : fleet.events) {
    if (!is_about(event, pod) || event.reason != "FailedScheduling" || event.time < newest) continue;
    newest = event.time;
    message = event.message;
  }
  return message;
}

// A resource of which no node has as many as are asked for.
void note_never(const Fleet& fleet, const std::vector<NodeState>& states, const Pod& pod,
                std::vector<std::string>& notes) {
  if (!fleet.nodes_unread.empty()) {
    notes.push_back(printable(fleet.nodes_unread, 400) + "; what those offer is not known");
    return;
  }
  for (const auto& [resource, asked] : scheduled_amounts(pod)) {
    std::int64_t most = 0;
    std::string type;
    bool by_claim = false;
    for (const NodeState& state : states) {
      by_claim |= !state.pools.empty();
      const auto found = state.node.capacity.find(resource);
      if (found == state.node.capacity.end() || found->second <= most) continue;
      most = found->second;
      type = state.node.instance_type;
    }
    if (asked <= most || (most == 0 && by_claim)) continue;
    const std::string name = printable(resource);
    if (most == 0) {
      const std::string hint = resource == kNeuronDevice ? ": the agent offers it with --neurondevice only"
                                                         : ": no agent offers it, or it is not ready there";
      notes.push_back("no node lists " + name + hint);
      continue;
    }
    const std::string logical = resource == kNeuronCore ? "; it counts logical cores" : "";
    notes.push_back("no node has " + amount_text(asked) + " " + name + ", even when empty: the most is " +
                    std::to_string(most) + (type.empty() ? "" : " (" + printable(type) + ")") +
                    "; ask for less, or add a larger type" + logical);
  }
}

bool any(const std::vector<Verdict>& verdicts, Answer answer) {
  return std::ranges::find(verdicts, answer, &Verdict::answer) != verdicts.end();
}

bool is_gated(const Pod& pod) {
  return !pod.gates.empty() || pod.scheduled_reason == "SchedulingGated";
}

// Of what the scheduler says there is too little; "": it says something else.
std::string scarce_in(const Explanation& one) {
  constexpr std::string_view kHead = "Insufficient ";
  if (one.said == "Too many pods") return "pods";
  return one.said.starts_with(kHead) ? one.said.substr(kHead.size()) : "";
}

// Nodes that were found to have too little of it.
std::size_t nodes_without(const std::string& name, const std::vector<NodeGroup>& groups) {
  std::size_t nodes = 0;
  for (const NodeGroup& group : groups) {
    const bool has_it = std::ranges::any_of(group.obstacles, [&](const Obstacle& obstacle) {
      return (obstacle.kind == Kind::too_little || obstacle.kind == Kind::no_resource) && obstacle.name == name;
    });
    if (has_it) nodes += group.nodes.size();
  }
  return nodes;
}

// Whether as many nodes as the scheduler says were found to have too little of it.
bool is_found(const Explanation& one, const std::vector<NodeGroup>& groups) {
  const std::string name = scarce_in(one);
  const std::size_t nodes = name.empty() ? 0 : nodes_without(name, groups);
  return nodes > 0 && nodes >= static_cast<std::size_t>(std::max(one.nodes, 0));
}

// What the scheduler says of things that are not checked here.
std::vector<std::string> others_of(const Why& why) {
  std::vector<std::string> all;
  for (const Explanation& one : why.scheduler) {
    if (!one.of_hardware && !one.is_past && !is_found(one, why.nodes)) all.push_back(one.said);
  }
  return all;
}

// What was counted is known as it is now, where the pod fits or on all nodes: if the scheduler said otherwise, then
// before.
void mark_past(const Fleet& fleet, const Pod& pod, const std::vector<Verdict>& verdicts, Why& why) {
  const bool fits = any(verdicts, Answer::yes);
  if (fleet.pods_partial || (!fits && !fleet.nodes_unread.empty())) return;
  const Amounts asked = general_amounts(pod);
  const std::string older = "the scheduler's message is older than this: it says ";
  std::vector<std::string> past;
  for (Explanation& one : why.scheduler) {
    const std::string name = scarce_in(one);
    if (one.of_hardware || !asked.contains(name) || is_found(one, why.nodes)) continue;
    one.is_past = !fleet.nodes.empty();
    for (std::size_t i = 0; i < std::min(verdicts.size(), fleet.nodes.size()); ++i) {
      const bool counts = !fits || verdicts[i].answer == Answer::yes;
      one.is_past &= !counts || fleet.nodes[i].general.contains(name);
    }
    const std::size_t without = fits ? 0 : nodes_without(name, why.nodes);
    if (one.is_past && without == 0) past.push_back(one.said);
    if (one.is_past && without > 0) {
      why.notes.push_back(older + one.said + " of " + counted(one.nodes, "node") + ", and " + counted(without, "node") +
                          (without == 1 ? " has" : " have") + " too little now");
    }
  }
  if (!past.empty()) why.notes.push_back(older + some_of(past) + ", which is no longer so");
}

// By the verdicts, and by what the scheduler says of things that are not checked here.
Answer answer_of(const Fleet& fleet, const Pod& pod, const std::vector<Verdict>& verdicts, const Why& why) {
  if (is_gated(pod)) return Answer::no;
  if (any(verdicts, Answer::yes)) {
    return others_of(why).empty() && why.not_counted.empty() ? Answer::yes : Answer::unknown;
  }
  const bool is_part = any(verdicts, Answer::unknown) || verdicts.empty() || !fleet.nodes_unread.empty();
  return is_part ? Answer::unknown : Answer::no;
}

// What the scheduler says of things that are not checked here stays, whatever is changed; so does what was not
// counted.
void note_others(Why& why) {
  const std::vector<std::string> others = others_of(why);
  why.as_counted = (!others.empty() || !why.not_counted.empty()) && !why.changes.empty();
  if (why.as_counted && !others.empty()) {
    why.notes.push_back("the changes are proved as far as counted: the scheduler also says " + some_of(others) +
                        ", which kubectl neuron does not check");
  }
}

std::string summary_of_waiting(const Why& why, const Pod& pod, bool is_unread) {
  if (is_gated(pod)) {
    return "it is not scheduled before its scheduling gate is removed" +
           (pod.gates.empty() ? "" : ": " + some_of(pod.gates));
  }
  std::vector<std::string> fits;
  for (const NodeGroup& group : why.nodes) {
    if (group.answer == Answer::yes) fits.insert(fits.end(), group.nodes.begin(), group.nodes.end());
  }
  if (why.answer == Answer::yes) return "it fits now on " + some_of(fits);
  if (!fits.empty() && others_of(why).empty()) return "as far as counted it fits now on " + some_of(fits);
  if (!fits.empty()) {
    return "its devices fit on " + some_of(fits) + "; the scheduler names reasons that kubectl neuron does not check";
  }
  if (why.nodes.empty()) return is_unread ? "no node could be read" : "no node is listed";
  const bool all_no = std::ranges::all_of(why.nodes, [](const NodeGroup& one) { return one.answer == Answer::no; });
  if (why.answer == Answer::unknown && all_no) return "it fits on none of the nodes that could be read";
  return why.answer == Answer::no ? "it fits on no node now" : "it is unknown whether it fits";
}

// Whether nothing was ever said about the pod: no scheduler serves it, or it is seconds old.
bool is_silent(const Why& why, const Pod& pod) {
  return why.state == PodState::waiting && why.scheduler.empty() && pod.scheduled_reason.empty() && pod.gates.empty();
}

// Changes that could be tried, as far as there was time.
void add_changes(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states,
                 const std::vector<Verdict>& verdicts, Effort* effort, Why& why) {
  Changes changes = changes_for(fleet, pod, states, verdicts, effort);
  why.changes = std::move(changes.found);
  why.tried = std::move(changes.tried);
  const bool late = effort != nullptr && effort->was_over();
  why.all_tried = changes.all_tried && !late;
  if (why.all_tried) return;
  why.notes.push_back(late ? "the search ended after " + std::to_string(effort->limit().count()) +
                                 " s; more or smaller changes may exist"
                           : "not all changes were tried; more or smaller ones may exist");
}

void explain_waiting(const Fleet& fleet, const Pod& pod, Effort* effort, Why& why) {
  const Pod question = pod.node.empty() ? pod : made_again(pod);
  std::vector<NodeState> states = node_states(fleet);
  count_general(fleet, states);
  const std::vector<Verdict> verdicts = fit_all(fleet, question, states, effort);
  why.scheduler = explain_scheduler(scheduler_message(fleet, pod));
  why.nodes = grouped(states, verdicts);
  mark_past(fleet, question, verdicts, why);
  why.not_counted = uncounted_rules(fleet, question);
  for (std::string& name : uncounted_resources(fleet, question)) why.not_counted.push_back(std::move(name));
  why.answer = answer_of(fleet, question, verdicts, why);
  if (why.answer != Answer::yes) note_never(fleet, states, question, why.notes);
  const bool is_gate_unread = is_gated(question) && question.gates.empty();  // no change is known to remove it
  if (!any(verdicts, Answer::yes) && !is_gate_unread) add_changes(fleet, question, states, verdicts, effort, why);
  note_others(why);
  if (is_silent(why, pod)) {
    why.notes.push_back("no scheduler has said anything about it: its schedulerName (" +
                        printable(pod.scheduler.empty() ? "default-scheduler" : pod.scheduler) +
                        ") is not installed, or the pod is seconds old");
  }
  why.summary = summary_of_waiting(why, question, !fleet.nodes_unread.empty());
}

// It will not run again, whatever the nodes have.
void explain_ended(const Pod& pod, Why& why) {
  const std::string reason = pod.reason.empty() || pod.reason == pod.phase ? "" : ", " + printable(pod.reason, 100);
  const std::string message = pod.message.empty() ? "" : ": " + printable(pod.message, 300);
  why.answer = Answer::no;
  why.summary = "it has ended (" + printable(pod.phase) + reason + message + ") and does not run again";
}

// Reasons not to start are left out for a pod that runs or has ended. Each meaning once.
bool is_worth(const Explanation& one, const Pod& pod, const Why& why) {
  if (one.of_hardware) return true;
  const bool is_past = why.state != PodState::starting && (why.state != PodState::running || pod.waits.empty());
  const bool is_known =
      !one.meaning.empty() && std::ranges::find(why.messages, one.meaning, &Explanation::meaning) != why.messages.end();
  return !is_past && !is_known;
}

}  // namespace

PodState state_of(const Pod& pod) {
  if (is_rejection(pod)) return PodState::refused;
  if (has_ended(pod)) return PodState::ended;
  if (pod.deleting) return PodState::ending;
  if (pod.node.empty()) return PodState::waiting;
  return pod.phase == "Running" ? PodState::running : PodState::starting;
}

Why why(const Fleet& fleet, const Pod& pod, Effort* effort) {
  Why result;
  result.pod = full_name(pod);
  result.state = state_of(pod);
  result.node = pod.node;
  const std::vector<Said> said = messages_of(fleet, pod);
  for (const Said& message : said) {
    const auto known = explained(pod, message);
    if (known && is_worth(*known, pod, result) && result.messages.size() < kMostMessages)
      result.messages.push_back(*known);
  }
  switch (result.state) {
    case PodState::waiting:
      explain_waiting(fleet, pod, effort, result);
      break;
    case PodState::refused:
      if (result.messages.empty()) {
        result.messages.push_back(
            {printable(joined(pod.reason, pod.message), 400), "the kubelet rejected it", "", 0, true});
      }
      explain_waiting(fleet, pod, effort, result);
      result.scheduler.clear();
      result.summary =
          "it was refused on " + printable(pod.node) + ", which is final for this pod; made again, " + result.summary;
      break;
    case PodState::ended:
      explain_ended(pod, result);
      break;
    case PodState::ending:
      if (pod.node.empty()) {
        result.answer = Answer::no;
        result.summary = "it is being deleted, and was never on a node";
        break;
      }
      [[fallthrough]];
    case PodState::starting:
    case PodState::running:
      explain_placed(fleet, pod, said, result);
      break;
  }
  return result;
}

int exit_status(const Why& why) {
  return why.answer == Answer::yes ? 0 : why.answer == Answer::no ? 1 : 2;
}

}  // namespace neuron::fleet
