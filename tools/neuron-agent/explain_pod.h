#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/hardware.h"
#include "agent/model/allocation.h"
#include "agent/model/host_scan.h"

// Hardware of one pod on this node, its locality and health, from one scan of the machine and one answer of the
// kubelet. Pure.
namespace neuron::agent {

// The kubelet's view of one unit. Of a device plugin: it lists the healthy ones. Of a claim: the driver's report, as
// far as one scan of the machine shows it.
enum class KubeletView { healthy, unhealthy, unknown };

// By one resource, or by one claim.
struct HeldUnits {
  std::string resource;  // "aws.amazon.com/neuron"; of a claim the driver's name
  std::string claim;     // "" = through a device plugin
  std::vector<std::string> ids;
  std::vector<KubeletView> kubelet;          // parallel to ids
  std::vector<std::string> unknown;          // of ids: those that this node does not have
  bool admin_access = false;                 // of a claim: the container holds none of them
  [[nodiscard]] bool has_unhealthy() const;  // for the kubelet
};

struct ExplainedDevice {
  int index = 0;
  std::optional<model::NeuronDevice> facts;  // of the scan, with health; nullopt: not found on the machine
  std::vector<int> cores;                    // global logical ids, ascending; empty: their number is unknown
  std::vector<int> physical_cores;           // of the device, ascending; empty: unknown
  bool whole = true;                         // all of its cores
  model::Health health;                      // of the held cores, or of the whole device
  std::string device_is;                     // "" or the state of the device as a whole where that is worse
  std::vector<std::string> shared_with;      // "namespace/pod/container" of others that hold some of it
};

struct ExplainedEfa {
  std::string name;
  std::optional<model::EfaInterface> facts;  // as above
  std::vector<int> nearest_to;               // devices of the node, ascending
  bool is_near = false;                      // one of them is the container's
};

// Locality of a container's hardware. Numbers without a meaning on this node are absent.
struct Nearness {
  std::string shape;             // "aligned group of 4", "run of 3", "one range over 2 devices"; "" without devices
  std::optional<int> hops;       // summed over all pairs of devices
  std::optional<int> best_hops;  // of the nearest set of as many that this node could give when empty
  bool scattered = false;        // cores that are not a range, as the runtime counts
  int numa_nodes = 0;            // distinct known ones
  std::optional<int> near_efas;  // interfaces that are the nearest of a device held
  std::optional<int> best_efas;  // how many of as many could be
  std::vector<int> better_now;   // devices that are nearer to each other and free now; empty: none
  [[nodiscard]] bool is_worse_than_possible() const {
    return scattered || (hops && best_hops && *hops > *best_hops) ||
           (near_efas && best_efas && *near_efas < *best_efas);
  }
};

struct ExplainedContainer {
  std::string name;
  std::vector<HeldUnits> units;
  std::vector<ExplainedDevice> devices;  // ascending index
  std::vector<ExplainedEfa> efas;        // ascending name
  Nearness nearness;
};

struct ExplainedPod {
  std::string pod_namespace;
  std::string pod;
  std::vector<ExplainedContainer> containers;  // only those that hold something of this node's
  std::vector<std::string> foreign;            // other resources that the pod holds, unknown to this agent
};

// Input of the report. `allocations`: all pods of the node, as the kubelet lists them.
struct ExplainFacts {
  model::HostScan host;  // assessed
  std::vector<model::Allocation> allocations;
  std::optional<model::Allocatable> allocatable;  // nullopt: the kubelet did not say
  // Why the kubelet's checkpoint, which has the numbering of core ids, could not be read; "": it was, or is absent.
  std::string checkpoint_unread{};
  std::string driver{core::kDefaultDriverName};
};

// An interface without its driver has no RDMA name: gives it the name under which a container holds it, and adds held
// interfaces that have vanished, as a running agent does.
void add_held_interfaces(ExplainFacts& facts);

// The pod must be one of the allocations.
[[nodiscard]] ExplainedPod explain_pod(const ExplainFacts& facts, std::string_view pod_namespace, std::string_view pod);

// Whether the health is a fault to report: a device without signals is none.
[[nodiscard]] bool is_fault(const model::Health& health);

// Whether a unit of the pod is unhealthy here or for the kubelet, unknown to this node, or farther away than necessary.
[[nodiscard]] bool has_findings(const ExplainedPod& pod);
[[nodiscard]] bool is_worse_than_possible(const ExplainedPod& pod);  // in any of its containers
[[nodiscard]] bool has_faults(const ExplainedPod& pod);              // the same without that

// The pod of the node that "namespace/name", or a name alone, selects.
struct PodChoice {
  std::optional<std::string> pod_namespace;  // nullopt: none, or several
  std::string pod;
  std::vector<std::string> near;  // "namespace/name" that may have been meant; at most 5
  std::size_t pods = 0;           // how many the kubelet lists
};
[[nodiscard]] PodChoice choose_pod(const std::vector<model::Allocation>& allocations, std::string_view wanted);
// Why no pod was chosen: a name without namespace matches several, or none on this node.
[[nodiscard]] std::string no_choice_text(const PodChoice& choice, const std::string& wanted);

// The report as text: hardware, locality and health of each container, the reason of the choice, and actions. Foreign
// names are printable already. With line ends. Pure.
[[nodiscard]] std::string explain_text(const ExplainedPod& pod, const ExplainFacts& facts);

// The explanation as one JSON document of that schema, with a line end. Pure.
inline constexpr const char* kExplainSchema = "neuron-explain/1";  // docs/schema/neuron-explain-1.json
[[nodiscard]] std::string explain_json(const ExplainedPod& pod, const ExplainFacts& facts);

// "unhealthy", "unhealthy: sram_ecc_uncorrected".
[[nodiscard]] std::string state_words(const model::Health& health);

}  // namespace neuron::agent
