#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/report/node_report.h"
#include "tools/kubectl-neuron/shared_map.h"

// A cluster's nodes, pods and claims as far as this user may read them: what every command of kubectl-neuron works on.
// Passive data, made once from the documents of the API server and the agents (documents.h). All texts are foreign:
// bounded when they are read, made printable when they are shown.
namespace neuron::fleet {

using Amounts = std::map<std::string, std::int64_t>;  // by resource name: "aws.amazon.com/neuron"
// Larger amounts are read as this; the bound keeps sums from overflowing.
inline constexpr std::int64_t kMostUnits = 2147483647;
inline constexpr std::int64_t kMostUnitsOfNode = 10'000;  // no node has more than a few thousand
using Labels = std::map<std::string, std::string>;

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // "NoSchedule", "PreferNoSchedule", "NoExecute"
};

// Mode in which a node offers its hardware, by its Node object and ResourceSlices.
enum class Mode { none, device_plugin, claims };

struct Node {
  std::string name;
  std::string created;  // RFC 3339; "" unknown
  Labels labels;
  std::vector<Taint> taints;
  bool unschedulable = false;
  std::optional<bool> ready;  // condition Ready; nullopt: unknown
  Amounts allocatable;        // the resources of this project alone, as the kubelet reports them
  Amounts capacity;
  Mode mode = Mode::none;
  std::string instance_type;  // label node.kubernetes.io/instance-type, else the agent's document; "" unknown
  std::string agent_pod;      // "namespace/name" of the agent's pod; "": none found
  std::string agent_version;  // "" unknown
  std::optional<report::NodeReport> report;  // the agent's document (GET /node); nullopt: see report_missing
  std::string report_missing;                // one sentence why there is none; "" with a report
  Amounts general{};                         // allocatable of all other resources, in thousandths: cpu, memory, pods
};

struct Toleration {
  std::string key;  // "" with operator Exists: every taint
  std::string op;   // "Exists", "Equal"
  std::string value;
  std::string effect;  // "": every effect
};

// One term of nodeSelector or of a required node affinity.
struct LabelRule {
  std::string key;
  std::string op;  // "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
  std::vector<std::string> values;
  bool is_field = false;  // matchFields: key is "metadata.name"
};

// Pods that one with required anti-affinity keeps away from.
struct PodSelector {
  std::vector<std::string> namespaces;  // empty: its own, or any
  bool any_namespace = false;           // chosen by labels of namespaces, which are not read
  std::vector<LabelRule> rules;         // all of them
};

struct Container {
  std::string name;
  bool init = false;                // also sidecars
  bool sidecar = false;             // an init container with restartPolicy Always
  Amounts requests;                 // of this project's resources; of limits where no request is written
  std::vector<std::string> claims;  // names in Pod::claims that it uses
};

struct PodClaim {
  std::string name;   // in the pod's spec
  std::string claim;  // the ResourceClaim; "": not made yet
  std::string claim_template;
};

// A container that does not run yet, or not again.
struct ContainerWait {
  std::string container;
  std::string reason;  // "ContainerCreating", "ImagePullBackOff", "CrashLoopBackOff"
  std::string message;
};

struct Pod {
  std::string pod_namespace;
  std::string name;
  std::string uid;
  std::string node;     // "": not placed
  std::string phase;    // "Pending", "Running", "Succeeded", "Failed", "Unknown"
  std::string reason;   // status.reason: "UnexpectedAdmissionError"
  std::string message;  // status.message
  std::string created;
  std::string scheduled_reason;   // condition PodScheduled, where False: "Unschedulable", "SchedulingGated"
  std::string scheduled_message;  // "0/3 nodes are available: …"
  std::string scheduled_since;    // RFC 3339, since when it is False; "" unknown
  std::string scheduler;          // spec.schedulerName
  bool deleting = false;          // has a deletionTimestamp
  bool stays = false;             // of a DaemonSet, or static: ended, it comes back on its node
  bool critical = false;          // of kube-system, or of a priority of the system's: no change ends or moves it
  std::vector<std::string> gates;
  Labels node_selector;
  std::vector<std::vector<LabelRule>> node_affinity;  // one of these, each all of its rules; empty: no requirement
  std::vector<Toleration> tolerations;
  std::vector<Container> containers;
  std::vector<PodClaim> claims;
  std::vector<ContainerWait> waits;
  std::set<std::string> rules;           // rules_not_counted() of its spec (parse.h)
  std::vector<PodSelector> keeps_away;   // required anti-affinity
  std::shared_ptr<const Labels> labels;  // null: not known
  Amounts general;  // requests of all other resources, in thousandths, as the scheduler counts them for the pod
  bool amounts_unread = false;  // has requests that could not be read, and are not among those above
};

// The scheduler's count for a pod on its node: the largest of the sum over containers and sidecars, and each init
// container with the sidecars before it. Pods that have ended count nothing.
[[nodiscard]] Amounts scheduled_amounts(const Pod& pod);
[[nodiscard]] bool has_ended(const Pod& pod);  // Succeeded or Failed
// Whether it asks for a resource of this project or has claims.
[[nodiscard]] bool asks_for_hardware(const Pod& pod);

struct DeviceSelector {
  std::string expression;  // CEL
};

struct ClaimRequest {
  std::string name;
  std::string device_class;
  std::vector<DeviceSelector> selectors;
  bool all = false;  // allocationMode All
  std::int64_t count = 1;
  bool admin_access = false;
  Labels capacity;                            // capacity.requests as written
  std::vector<Toleration> tolerations;        // of taints of devices
  std::vector<ClaimRequest> first_available;  // alternatives; then the members above but the name mean nothing
};

struct ClaimConstraint {
  std::vector<std::string> requests;  // empty: all
  std::string match_attribute;
  std::string distinct_attribute;
};

struct AllocatedDevice {
  std::string request;
  std::string driver;
  std::string pool;
  std::string device;
  bool admin_access = false;
  Labels consumed_capacity;
};

struct Claim {
  std::string claim_namespace;
  std::string name;
  std::string uid;
  std::vector<ClaimRequest> requests;
  std::vector<ClaimConstraint> constraints;
  bool allocated = false;
  std::vector<AllocatedDevice> devices;
  std::vector<std::string> reserved_for;  // names of pods
};

struct DeviceClass {
  std::string name;
  std::vector<DeviceSelector> selectors;
  std::string extended_resource;  // spec.extendedResourceName
};

struct AttributeValue {  // one of them
  std::optional<std::int64_t> number;
  std::optional<bool> flag;
  std::optional<std::string> text;  // also versions
  friend auto operator<=>(const AttributeValue&, const AttributeValue&) = default;
};

struct SliceDevice {
  std::string name;
  SharedMap<AttributeValue> attributes;  // names without the driver's domain; others whole
  Labels capacity;                       // quantities as written
  bool multiple = false;                 // allowMultipleAllocations
  SharedMap<Labels> consumes;            // counter set -> counter -> quantity
  std::vector<Taint> taints;
};

struct Pool {  // of one node and driver: the slices of its newest generation together
  std::string driver;
  std::string name;
  std::string node;
  bool complete = false;  // as many slices as resourceSliceCount
  std::vector<SliceDevice> devices;
  SharedMap<Labels> counters;  // counter set -> counter -> quantity
};

// A slice, as a pool of its devices alone; `generation` and `slices` for putting the pool together.
struct Slice {
  Pool pool;
  std::int64_t generation = 0;
  std::int64_t slices = 0;  // resourceSliceCount
};

// Equal facts of the devices of all slices, once.
struct SliceFacts {
  SharedMap<AttributeValue>::Store attributes;
  SharedMap<Labels>::Store counters;
};

struct Event {
  std::string object_kind;
  std::string object_namespace;
  std::string object_name;
  std::string reason;
  std::string message;
  std::string time;  // of the last; RFC 3339
  std::int64_t count = 1;
  std::string object_uid{};  // "" unknown
};

struct Fleet {
  std::vector<Node> nodes;  // by name
  std::vector<Pod> pods;    // by namespace and name
  std::vector<Claim> claims;
  std::map<std::string, std::vector<ClaimRequest>> claim_templates;  // "namespace/name"; see template_constraints
  std::map<std::string, std::vector<ClaimConstraint>> template_constraints;
  std::vector<DeviceClass> classes;
  std::vector<Pool> pools;
  std::vector<Event> events;
  std::string default_namespace;     // of the user's context; "" unknown
  std::string read_at;               // RFC 3339, when the documents were read
  std::string nodes_unread;          // why there may be nodes that are not listed here, a sentence; "": there are none
  std::string pods_unread;           // likewise of pods
  bool pods_partial = false;         // there may be pods that are not listed here
  bool claims_partial = false;       // likewise
  std::vector<std::string> unknown;  // one sentence for each thing that could not be read, and why
};

// Whether the driver of this project published it, under whatever name: by the attribute resourceType of its devices.
[[nodiscard]] bool is_neuron_pool(const Pool& pool);

[[nodiscard]] const Node* find_node(const Fleet& fleet, const std::string& name);
[[nodiscard]] const Pod* find_pod(const Fleet& fleet, const std::string& pod_namespace, const std::string& name);
[[nodiscard]] const Claim* find_claim(const Fleet& fleet, const std::string& claim_namespace, const std::string& name);

}  // namespace neuron::fleet
