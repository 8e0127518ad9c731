#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/why.h"

// Messages of the scheduler, the kubelet, the runtime and the agent (docs/troubleshooting.md, docs/resources.md).
namespace neuron::fleet {
namespace {

constexpr std::size_t kMostSaid = 400;

struct Row {
  std::string_view has;   // in the message; ASCII, compared as it is
  std::string_view also;  // in the message as well; "": nothing
  std::string_view meaning;
  std::string_view advice;
  bool of_hardware = true;
};

constexpr std::string_view kAgain = "let its controller make another pod";
constexpr std::string_view kImage = "an image cannot be pulled";
constexpr std::string_view kOfImage =
    "check its name and the registry's secret (imagePullSecrets); the kubelet retries";
constexpr std::string_view kVolume = "a volume cannot be attached or mounted";
constexpr std::string_view kCrash = "a container ends again and again";
constexpr std::string_view kOneName =
    "let its controller make another pod; or use one of the two names per node, or a split (--core-devices)";

// The first row that matches counts.
constexpr std::array kKubelet = {
    Row{"was just allocated", "offers no device under both names",
        "a container asks for devices and for cores, and this node offers each device under one name only",
        "ask for one of the two resources"},
    Row{"was just allocated", "", "a container asks for devices and for cores that are not the same hardware",
        "ask for all cores of as many devices through both resources, or for one of the two"},
    Row{"is offered under another resource name now", "",
        "which devices the node offers as cores has changed since the pod was scheduled", kAgain},
    Row{"through claim", "held by", "a claim still holds the hardware: the node served claims before",
        "drain a node before its mode changes; then let its controller make another pod"},
    Row{"though the kubelet offers it", "",
        "the kubelet offered hardware that its own record gives to another container", kAgain},
    Row{"is held by", "through", "a container holds the hardware under the other resource name", kOneName},
    Row{"has not been scanned yet", "", "the agent had just started and had not read the hardware", kAgain},
    Row{"is unhealthy", "", "the device failed between scheduling and admission",
        "let its controller make another pod; the node's health is in kubectl neuron nodes"},
    Row{"requested number of devices unavailable", "",
        "the list of the node shrank after the pod was scheduled: a device failed, or pods hold it by the other name; "
        "or "
        "the agent was restarting and had no list",
        kAgain},
    Row{"previously allocated devices are no longer healthy", "",
        "the kubelet restarted, and a device of the pod had failed", kAgain},
    Row{"no healthy devices present", "",
        "no plugin served the resource, or all of its devices were unhealthy: the agent was restarting or is gone, and "
        "the pod bypassed the scheduler or was placed before the node status changed",
        "check whether the agent runs on the node; let its controller make another pod"},
    Row{"cannot allocate unhealthy devices", "", "the kubelet restarted, and a device of the pod had failed", kAgain},
    Row{"allocate unregistered device", "",
        "no plugin served the resource: the kubelet or the agent was restarting, or the pod bypassed the scheduler",
        kAgain},
    Row{"didn't have enough resource", "",
        "the node had too few when the pod came: it bypassed the scheduler (nodeName, static pod), or a device failed",
        kAgain},
    Row{"Topology locality", "", "the kubelet's Topology Manager found no NUMA node with so many; final for the pod",
        "set the policy none or best-effort on the node, or ask for fewer"},
    Row{"TopologyAffinityError", "",
        "the kubelet's Topology Manager found no NUMA node with so many; final for the pod",
        "set the policy none or best-effort on the node, or ask for fewer"},
    Row{"/dev/neuron", "no such file or directory", "a device node was removed after the device was given",
        "restart udev or load the driver; the kubelet retries"},
    Row{"bytes of device memory in use", "", "another process still has memory on the cores",
        "end the process (neuron-ls and neuron-top show it); the kubelet retries"},
    Row{"claims.lock", "", "the driver could not lock its record: a slow disk, or two driver pods on the node",
        "check for a second driver pod; the kubelet retries"},
    Row{"is not registered", "", "no driver for the claim runs on the node",
        "start the driver there (label neuron-agent/mode=dra), or delete the pod so that another node is chosen"},
    Row{"unresolvable CDI devices", "", "the container runtime has CDI off, or reads another directory",
        "set enable_cdi = true in containerd, with /var/run/cdi among its directories"},
    Row{"logicalNeuronCore", "", "another claim uses cores of the device with another LNC",
        "ask for the same LNC, or wait until the other claim ends"},
    Row{"prepare dynamic resources", "", "the claim could not be prepared on the node; the message names the cause",
        "the kubelet retries after 60 to 90 s"},
    Row{"Allocate failed", "", "the kubelet or the agent could not give what the scheduler had counted", kAgain},
};

// Causes outside of this project's hardware that keep a container from running.
constexpr std::array kOfContainers = {
    Row{"InvalidImageName", "", kImage, "correct the image's name", false},
    Row{"ErrImageNeverPull", "", kImage, "load the image on the node, or change imagePullPolicy", false},
    Row{"ImagePullBackOff", "", kImage, kOfImage, false},
    Row{"ErrImagePull", "", kImage, kOfImage, false},
    Row{"Back-off pulling image", "", kImage, kOfImage, false},
    Row{"Failed to pull image", "", kImage, kOfImage, false},
    Row{"FailedMount", "", kVolume, "the message names the volume; the kubelet retries", false},
    Row{"FailedAttachVolume", "", kVolume, "the message names the volume; it may still be attached elsewhere", false},
    Row{"FailedMapVolume", "", kVolume, "the message names the volume; the kubelet retries", false},
    Row{"FailedCreatePodSandBox", "", "the pod's network or sandbox could not be made",
        "check the network plugin of the node; the kubelet retries", false},
    Row{"CreateContainerConfigError", "", "a ConfigMap, Secret or field that it names is missing",
        "the message names it; the kubelet retries", false},
    Row{"CrashLoopBackOff", "", kCrash, kPreviousLogs, false},
    Row{"Back-off restarting failed container", "", kCrash, kPreviousLogs, false},
};

// Whole parts: another resource may have a name that only begins so.
constexpr std::array kCounted = {
    Row{"Insufficient aws.amazon.com/neurondevice", "", "fewer neurondevice are free than the pod asks for",
        "the agent offers this name with --neurondevice only"},
    Row{"Insufficient aws.amazon.com/neuron", "", "fewer are free than the pod asks for", ""},
    Row{"Insufficient aws.amazon.com/neuroncore", "", "fewer are free than the pod asks for", ""},
    Row{"Insufficient vpc.amazonaws.com/efa", "", "fewer interfaces are free than the pod asks for", ""},
};

constexpr std::string_view kUnchecked = "kubectl neuron does not check this";
constexpr std::string_view kStarting = "the node is starting; its taint goes away by itself";

constexpr std::array kScheduler = {
    Row{"Insufficient", "", "too little of a resource other than devices and interfaces", "", false},
    Row{"Too many pods", "", "the node has as many pods as it takes", "", false},
    Row{"untolerated taint", "{node.kubernetes.io/unschedulable", "the node is cordoned", "uncordon it"},
    Row{"untolerated taint", "{node.kubernetes.io/", "the node is unhealthy; its taint names the cause",
        "repair the node: a pod that tolerates the taint would not run there either"},
    Row{"untolerated taint", "{node.cloudprovider.kubernetes.io/", "the node is starting, or shut down", ""},
    Row{"untolerated taint", "agent-not-ready:", kStarting, ""},
    Row{"untolerated taint", "unregistered:", kStarting, ""},
    Row{"untolerated taint", "uninitialized:", kStarting, ""},
    Row{"untolerated taint", "neuron-agent/starting:", kStarting, ""},
    Row{"untolerated taint", "{ToBeDeletedByClusterAutoscaler", "the autoscaler removes the node", ""},
    Row{"untolerated taint", "{karpenter.sh/disrupt", "Karpenter removes the node", ""},
    Row{"untolerated taint", "", "the pod does not tolerate a taint", "tolerate it"},
    Row{"volume node affinity", "", "a volume of the pod belongs to other nodes", "", false},
    Row{"node affinity", "", "nodeSelector or node affinity of the pod exclude the node", ""},
    Row{"existing pods anti-affinity", "", "a pod there keeps this one away by its anti-affinity", "", false},
    Row{"pod anti-affinity", "", "a pod that this one keeps away from runs there",
        "for the agent's own pod: another agent or AWS's plugin serves the node", false},
    Row{"pod affinity", "", "the pods that this one wants beside it are not there", "", false},
    Row{"unschedulable", "", "the node is cordoned", "uncordon it"},
    Row{"claim limit of", "", "a claim has at most 32 devices, and the pod asks for more",
        "ask for devices or groups instead of cores; or keep the pod off nodes that serve claims (neuron-agent/mode "
        "NotIn [dra])"},
    Row{"cannot allocate all claims", "",
        "the free devices of the node do not satisfy the claims: held, tainted or not offered", ""},
    Row{"timed out trying to allocate devices", "", "the search for devices took too long",
        "ask for a group (class group.neuron.aws.com) instead of a count"},
    Row{"scheduling gate", "", "it is not scheduled before its scheduling gates are removed", ""},
    Row{"waiting for resource claim", "", "a claim of the pod was not made yet", "wait; or make the ResourceClaim"},
    Row{"resourceclaim", "not found", "a claim of the pod does not exist", "make the ResourceClaim"},
    Row{"device class", "does not exist", "a device class of a claim does not exist",
        "install the classes (docs/dra.md)"},
    Row{"resourceclaim", "", "a claim is used by others or on another node", ""},
    Row{"preemption", "", "ending pods of lower priority would not help", "", false},
};

template <std::size_t N>
const Row* find_row(const std::array<Row, N>& rows, std::string_view text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string_view::npos; };
  const auto found = std::ranges::find_if(rows, [&](const Row& row) { return has(row.has) && has(row.also); });
  return found == rows.end() ? nullptr : &*found;
}

const Row* scheduler_row(std::string_view part) {
  const auto whole = std::ranges::find(kCounted, part, &Row::has);
  return whole == kCounted.end() ? find_row(kScheduler, part) : &*whole;
}

Explanation explanation(const Row& row, std::string_view said) {
  return {printable(said, kMostSaid), std::string(row.meaning), std::string(row.advice), 0, row.of_hardware};
}

// What follows the reasons: "1 Insufficient a. still not schedulable, preemption: 0/1 nodes are available: …".
constexpr std::array<std::string_view, 4> kTails = {"still not schedulable", "no new claims to deallocate",
                                                    "deallocation of ResourceClaim completed", "preemption:"};

std::string_view without_tail(std::string_view text) {
  for (const std::string_view tail : kTails) {
    for (std::size_t at = text.find(tail); at != std::string_view::npos; at = text.find(tail, at + 1)) {
      if (at == 0 || text[at - 1] == ' ') text = text.substr(0, at);
    }
  }
  return text.substr(0, text.find_last_not_of("., ") + 1);
}

// "Insufficient a": the name of a resource is one word, whatever follows.
std::string_view without_more(std::string_view part) {
  constexpr std::string_view kHead = "Insufficient ";
  if (!part.starts_with(kHead)) return part;
  const std::string_view whole = part.substr(0, part.find(' ', kHead.size()));
  return whole.substr(0, whole.find_last_not_of(".,;") + 1);
}

// The parts of "1 Insufficient a, 2 node(s) had untolerated taint {a: b, c: d}": no comma in braces divides.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}') --depth;
    const bool ends = depth <= 0 && text.substr(at).starts_with(", ") && at + 2 < text.size() &&
                      std::isdigit(static_cast<unsigned char>(text[at + 2])) != 0;
    if (!ends) continue;
    parts.push_back(trim(text.substr(begin, at - begin)));
    begin = at + 2;
  }
  parts.push_back(trim(text.substr(begin)));
  return parts;
}

// Takes "3 " off the front; 0: no number.
int take_count(std::string_view& part) {
  const std::size_t digits = std::min(part.find_first_not_of("0123456789"), part.size());
  const auto count = parse_int(part.substr(0, digits), 0, 1'000'000);
  if (!count || !part.substr(digits).starts_with(" ")) return 0;
  part.remove_prefix(digits + 1);
  return *count;
}

}  // namespace

namespace {

// Those that a driver, an autoscaler or the agent removes once the node is ready.
constexpr std::array<std::string_view, 4> kOfStartup = {"agent-not-ready", "unregistered", "uninitialized",
                                                        "neuron-agent/starting"};

bool is_startup_taint(std::string_view key) {
  return std::ranges::any_of(kOfStartup, [&](std::string_view end) { return key.ends_with(end); });
}

}  // namespace

std::vector<Explanation> explain_scheduler(std::string_view message) {
  constexpr std::size_t kMostParts = 32;
  constexpr std::string_view kHead = "nodes are available: ";
  std::vector<Explanation> all;
  std::string_view rest = message.substr(0, std::min<std::size_t>(message.size(), 8192));
  if (const std::size_t head = rest.find(kHead); head != std::string_view::npos)
    rest.remove_prefix(head + kHead.size());
  rest = without_tail(rest);
  if (rest.empty()) return all;
  for (std::string_view part : parts_of(rest)) {
    if (all.size() == kMostParts) break;
    const int nodes = take_count(part);
    part = without_more(part);
    const Row* row = scheduler_row(part);
    Explanation one = row != nullptr ? explanation(*row, part)
                                     : Explanation{printable(part, kMostSaid), std::string(kUnchecked), "", 0, false};
    one.nodes = nodes;
    all.push_back(std::move(one));
  }
  return all;
}

bool may_be_tolerated(std::string_view taint) {
  constexpr std::array<std::string_view, 4> kNever = {"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/",
                                                      "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupt"};
  const std::string_view key = taint.substr(0, taint.find_first_of("=:"));
  return !is_startup_taint(key) &&
         std::ranges::none_of(kNever, [&](std::string_view never) { return key.starts_with(never); });
}

std::vector<std::string_view> texts_of_tables() {
  std::vector<std::string_view> all;
  const auto add = [&](const auto& rows) {
    for (const Row& row : rows) all.insert(all.end(), {row.has, row.also});
  };
  add(kKubelet);
  add(kOfContainers);
  add(kCounted);
  add(kScheduler);
  return all;
}

std::optional<Explanation> explain_message(std::string_view message) {
  const Row* row = find_row(kKubelet, message);
  if (row == nullptr) row = find_row(kOfContainers, message);
  if (row == nullptr) return std::nullopt;
  return explanation(*row, message);
}

}  // namespace neuron::fleet
