#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/kubectl-neuron/effort.h"
#include "tools/kubectl-neuron/fleet.h"

// Whether a pod fits on a node as the fleet is: the arithmetic of the scheduler, the kubelet and the agent. Volumes,
// priorities and the other things that a scheduler weighs are not considered, processor time and memory where they were
// counted (count_general). Pure.
namespace neuron::fleet {

// A node's resources beside this project's, in thousandths. Passive data.
struct General {
  Amounts allocatable;
  Amounts free;  // less what pods ask for
};

// Everything of one node, copied out of the fleet so that it can be changed. Passive data.
struct NodeState {
  Node node;                                   // without its report
  const report::NodeReport* report = nullptr;  // the fleet's, which has to outlive this; nullptr: none
  std::vector<Pod> pods;                       // placed on it and not ended
  std::vector<Pool> pools;                     // in the order in which the scheduler tries them
  std::vector<Claim> claims;                   // allocated, with a device in one of the pools
  bool pods_hidden = false;                    // pods may hold its units that are not among `pods`
  bool claims_hidden = false;                  // likewise
  std::optional<General> general;              // nullopt: not counted; see count_general()
};

[[nodiscard]] std::vector<NodeState> node_states(const Fleet& fleet);  // parallel to Fleet::nodes

// A pod, "namespace/name", and how much it has of what an obstacle names; 0: not a number.
struct Holder {
  std::string pod;
  std::int64_t amount = 0;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

struct Obstacle {
  enum class Kind : std::uint8_t {
    // Obstacles of the pod, whatever the node:
    gated,          // name: the gate
    no_scheduler,   // name: spec.schedulerName, of which no trace is in the cluster
    claim_missing,  // name: a claim or template that does not exist
    class_unknown,  // name: the device class, detail: the request
    all_differ,     // all devices are asked for, against constraint `name` of claim `detail`: an error of the scheduler
    claim_full,     // name: a claim that `total` pods have, the most that can
    claim_limit,    // asked of at most `total` devices in one claim; name: the claim or the resource
    // Obstacles of the node:
    both_names,  // name: the container; asked: cores of its devices, free: cores by themselves; detail: "split"
                 // where no device has both names
    not_ready,
    unschedulable,    // cordoned
    taint,            // name: "key=value:effect"
    label,            // name: the first rule that is not met, "key in (a, b)"; detail: the node's value
    claim_elsewhere,  // name: a claim that is allocated on another node, detail: that node
    no_resource,      // name: a resource that the node does not list
    other_mode,  // name: the resource or claim; detail: "claims", "device plugin" or "nothing", what the node offers
    too_few,     // name: the resource; asked, free, total allocatable; holders; detail: "refused" where the scheduler,
                 // which counts names apart, sees enough
    other_name,  // units of `name` that are withheld since pods hold them by another name (detail); holders
    unhealthy,   // `asked` units of `name` (resource or request) are unhealthy; -1: some, it is not known how many
    incomplete_pool,  // name: the pool, some slices of which are missing
    no_device,        // name: the request; detail: the expression that no device meets
    lnc,              // likewise, an expression about the LNC
    too_few_devices,  // name: the request; asked, free, total that its selectors choose; holders
    counters,         // likewise, of devices whose cores are taken through other devices
    capacity,         // likewise, of devices that are shared and have not enough left
    tainted,          // likewise, of devices with a taint; detail: the taint
    constraint,       // name: the attribute that devices are to share or not to share, detail: the claim
    together,         // each request is met by itself, not all of them; name: the claims
    too_little,       // name: "cpu" or another general resource; asked, free, total in thousandths
    // It cannot be said.
    selector,       // name: the request; detail: the expression
    search,         // too many combinations; name: the claims
    refused_there,  // the scheduler may choose node `name` instead, whose agent refuses the pod
    name_order,     // pods ask for devices and cores; whether they meet depends on what is given first
    unread,         // name: what could not be read; detail: "holders" where some of them may hold the hardware, "split"
                    // (no name) where each device may be offered under both names, or under one alone
    not_tried,      // the time limit had been reached before
  };
  Kind kind = Kind::not_ready;
  std::string name;
  std::string detail;
  std::int64_t asked = 0;
  std::int64_t free = 0;
  std::int64_t total = 0;
  std::vector<Holder> holders;  // those with most first
  bool at_most = false;         // free: holders that could not be read may have some of it
  friend auto operator<=>(const Obstacle&, const Obstacle&) = default;
};

[[nodiscard]] Obstacle obstacle(Obstacle::Kind kind, std::string name, std::string detail = "");  // without numbers
[[nodiscard]] bool is_doubt(Obstacle::Kind kind);   // those under "It cannot be said"
[[nodiscard]] bool is_of_pod(Obstacle::Kind kind);  // the same on every node

enum class Answer : std::uint8_t { yes, no, unknown };

struct ClaimResult {
  std::string claim;  // name in the pod's spec, or the resource
  std::vector<AllocatedDevice> devices;
};

struct Verdict {
  Answer answer = Answer::unknown;
  std::vector<Obstacle> obstacles;   // empty with `yes`; with `unknown` at least one doubt and nothing worse
  std::vector<ClaimResult> devices;  // with `yes`: what the scheduler would allocate of this node's pools
};

// One node. What the pod itself holds there, if it is placed, is not free. Once `effort` has ended, nothing is tried:
// not_tried, or `search` where it ended meanwhile.
[[nodiscard]] Verdict fit(const Fleet& fleet, const Pod& pod, const NodeState& state, Effort* effort = nullptr);
// Whether the scheduler may choose the node, whose agent then refuses the pod.
[[nodiscard]] bool is_refused(const Verdict& verdict);
// One of several obstacles for which an agent refuses a pod.
[[nodiscard]] bool is_refusal(const Obstacle& obstacle);

// All nodes, parallel to `states`. all_differ and claim_limit on one node that passes the pod's other rules end the
// scheduling of the pod on all nodes (docs/dra.md#unmodified-pods).
[[nodiscard]] std::vector<Verdict> fit_all(const Fleet& fleet, const Pod& pod, const std::vector<NodeState>& states,
                                           Effort* effort = nullptr);

// The pod is placed as the verdict says, which is `yes`, or goes.
void place(const Fleet& fleet, const Pod& pod, const Verdict& verdict, NodeState& state);
// Claims by name of a pod that was just placed there are allocated from now on, and one pod more has them: further pods
// share them.
void share_claims(const Pod& pod, const Verdict& verdict, const NodeState& state, Fleet& rules);
// The pod as its controller would recreate it: on no node, with new claims.
[[nodiscard]] Pod made_again(Pod pod);
// Frees what the pod holds, but not claims that other pods use. False: its hardware is unknown, since the node's report
// is missing.
[[nodiscard]] bool release(const Pod& pod, NodeState& state);

// ---- Parts, for fit.cpp, `why` and tests

// Rules of the pod about the node: readiness, cordon, taints, labels.
[[nodiscard]] std::vector<Obstacle> node_obstacles(const Pod& pod, const Node& node);
[[nodiscard]] bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);
[[nodiscard]] bool is_met(const LabelRule& rule, const std::optional<std::string>& value);

// Resources that the node serves by claims: not allocatable there, and a class has the name.
[[nodiscard]] bool is_by_claim(const Fleet& fleet, const Node& node, const std::string& resource);
[[nodiscard]] const DeviceClass* class_of_resource(const Fleet& fleet, const std::string& resource);
// By the counts of the node: resources that are not by claim.
[[nodiscard]] std::vector<Obstacle> count_obstacles(const Fleet& fleet, const Pod& pod, const NodeState& state);
// Units of a resource that no pod has, as far as the node counts it.
[[nodiscard]] std::int64_t free_units(const NodeState& state, const std::string& resource);
// Counts the node's devices that no claim holds and that the pod's first request could select; their free cores
// instead, if it requests cores of shared devices. nullopt: the effort has ended.
struct FreeByClaim {
  std::int64_t units = 0;
  bool is_cores = false;
};
[[nodiscard]] std::optional<FreeByClaim> free_by_claim(const Fleet& fleet, const Pod& pod, const NodeState& state,
                                                       Effort* effort = nullptr);
// Logical cores of a device, from the agent's report, else the node's counts, else the instance type; 0: unknown.
[[nodiscard]] std::int64_t cores_per_device(const NodeState& state);
// Devices and cores of a pod's containers that ask for only one of the two. Under shared names units of one reduce
// those of the other, `resource`: by at least least_by_other_name().
struct SingleNames {  // devices and cores of containers that ask for one of the two
  std::int64_t devices = 0;
  std::int64_t cores = 0;
};
[[nodiscard]] SingleNames single_names(const Pod& pod);
[[nodiscard]] std::int64_t least_by_other_name(const SingleNames& held, const NodeState& state,
                                               const std::string& resource);
// Whether every device is offered under both names, or may be, so that each name withholds what the other one holds.
[[nodiscard]] bool offers_both_names(const NodeState& state);

inline constexpr std::int64_t kWholeUnit = 1000;  // thousandths
// Fills NodeState::general of states that are parallel to the fleet's nodes.
void count_general(const Fleet& fleet, std::vector<NodeState>& states);
// The node's general resources that the pod takes: also "pods".
[[nodiscard]] Amounts general_amounts(const Pod& pod);
[[nodiscard]] std::vector<Obstacle> general_obstacles(const Pod& pod, const NodeState& state);
// The number of such pods for which the node's general resources suffice; nullopt: any number.
[[nodiscard]] std::optional<std::int64_t> general_room(const Pod& pod, const NodeState& state);
void take_general(const Pod& pod, std::int64_t pods, NodeState& state);
// Resources of other drivers that the pod asks for, and no node lists.
[[nodiscard]] std::vector<std::string> unlisted_resources(const Fleet& fleet, const Pod& pod);
// Resources that the pod asks for, and that some node with hardware does not list, or hidden pods may hold.
[[nodiscard]] std::vector<std::string> uncounted_resources(const Fleet& fleet, const Pod& pod);
// Rules that could keep the pod, which runs or waits, off nodes and are not checked: its own and those of placed
// pods.
[[nodiscard]] std::vector<std::string> uncounted_rules(const Fleet& fleet, const Pod& pod);

// The claims of the pod, and the resources that are by claim on this node. Obstacles, or none and `devices`.
[[nodiscard]] std::vector<Obstacle> claim_obstacles(const Fleet& fleet, const Pod& pod, const NodeState& state,
                                                    std::vector<ClaimResult>& devices, Effort* effort = nullptr);

[[nodiscard]] std::string full_name(const Pod& pod);  // "namespace/name"

inline constexpr const char* kNeuron = "aws.amazon.com/neuron";
inline constexpr const char* kNeuronDevice = "aws.amazon.com/neurondevice";
inline constexpr const char* kNeuronCore = "aws.amazon.com/neuroncore";
inline constexpr const char* kEfa = "vpc.amazonaws.com/efa";
// The device classes of the chart, whatever the driver is called.
inline constexpr const char* kDeviceClass = "neuron.aws.com";
inline constexpr const char* kCoreClass = "core.neuron.aws.com";
inline constexpr const char* kEfaClass = "efa.neuron.aws.com";
inline constexpr const char* kGroupClass = "group.neuron.aws.com";
inline constexpr std::int64_t kMostPerClaim = 32;
inline constexpr std::size_t kMostSharing = 256;  // pods of one claim: the API server's limit of status.reservedFor

// ---- Obstacles as text; names in it are printable

// Formats a quantity: "4", "2147483647 or more" units; "500m" cpu, "7.8Gi" memory.
[[nodiscard]] std::string amount_text(std::int64_t units);
[[nodiscard]] std::string amount_text(const std::string& resource, std::int64_t thousandths);

// One sentence without a full stop: "asks for 4 aws.amazon.com/neuron, 2 of 16 are free; held by a/train-0 (14)".
[[nodiscard]] std::string words_of(const Obstacle& obstacle);

[[nodiscard]] std::string_view to_string(Obstacle::Kind kind);  // the enumerator's name
[[nodiscard]] std::string_view to_string(Answer answer);        // "fits", "does_not_fit", "unknown"

// "a, b, c and 4 more", with a noun "4 more pods": the first `most`, printable.
[[nodiscard]] std::string some_of(const std::vector<std::string>& names, std::size_t most = 4,
                                  std::string_view noun = "");
[[nodiscard]] std::string holders_of(const std::vector<Holder>& holders, std::size_t most = 4);

// Nodes with equal obstacles as one. Passive data.
struct NodeGroup {
  std::vector<std::string> nodes;
  Answer answer = Answer::unknown;
  std::vector<Obstacle> obstacles;  // holders of all nodes, each with its sum
};
// Those where it fits first, then unknown, then the others by the number of obstacles and nodes.
[[nodiscard]] std::vector<NodeGroup> grouped(const std::vector<NodeState>& states,
                                             const std::vector<Verdict>& verdicts);

}  // namespace neuron::fleet
