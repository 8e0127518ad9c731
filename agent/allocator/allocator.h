#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/model/snapshot.h"

// Chooses the units of a container. Pure: no clock, no I/O, deterministic. The order of preference is in
// docs/allocation.md.
namespace neuron::allocator {

// Static facts of one node, rebuilt when its inventory changes. Passive data.
struct NodeTopology {
  struct Device {
    int index = 0;
    int numa_node = -1;           // -1 unknown or none
    int pci_group = -1;           // equal: behind the same switch or host bridge, also among efas; -1 unknown
    std::vector<int> neighbours;  // indices; may name absent devices
    std::vector<int> near_efas;   // positions in `efas`, nearest group only
  };
  struct Efa {
    std::string name;
    int numa_node = -1;             // -1 unknown or none
    int pci_group = -1;             // as above
    std::vector<int> near_devices;  // device indices whose nearest EFA this is
  };
  std::vector<Device> devices;   // ascending index
  std::vector<Efa> efas;         // as HostScan::efas, ascending BDF
  int cores_per_device = 0;      // stride of the global core numbering
  bool groups_of_torus = false;  // 16-device torus, or switched: aligned groups 1, 4, 8, 16
  bool switched = false;         // every device reaches every other alike; neighbours mean nothing
  bool ring = false;             // line or ring: contiguous runs (ring wraps)
  bool line = false;
};

// Makes the topology from a completed scan: neighbours and NUMA nodes as scanned; nearest EFAs by the official table of
// the instance type unless the live PCI addresses contradict it, else by equal PCI parent, else by NUMA node.
[[nodiscard]] NodeTopology make_topology(const model::HostScan& scan);

// One question. All ids are integers: device index, global core id, or position in NodeTopology::efas. Bad input gives
// a plain answer, never an error: unordered or repeated ids are sorted, must_include outside `available` is ignored,
// ids that the topology does not know are taken last.
struct ChooseRequest {
  std::vector<int> available;     // ascending, unique; includes must_include
  std::vector<int> must_include;  // ascending, unique
  int size = 0;
  // Hints from the other resources of the same container, both may be empty:
  std::vector<int> prefer_devices;  // devices just given to it (for EFA and core choices)
  std::vector<int> prefer_efas;     // EFAs just given to it (for device and core choices)
  std::vector<int> avoid_devices;   // devices partly held through another resource: take last
  std::vector<int> free_devices;    // devices wholly free (for EFA choices that come first)
  // State of the node beside this resource; each may be empty, which means unknown:
  std::vector<int> free_efas;  // EFAs that no container holds (for device and core choices that come first)
  // Devices that a container asking for two resources could not have through the other one, as the kubelet sees it.
  // Weaker than avoid_devices: an aligned group or a run is preferred even so. In core choices such a device counts
  // only when all of its cores are available.
  std::vector<int> reluctant_devices;
  // For EFA choices that come first: on how many devices recent containers with as many EFAs were (cores: rounded up to
  // devices), the most likely first; the first four count. Empty: devices in proportion to the EFAs of the node.
  std::vector<int> likely_sizes;
};

// Why a choice is what it is. Numbers that do not apply or are not known are absent (numa_nodes and switches: 0).
struct Reason {
  enum class Kind : std::uint8_t {
    nothing,            // size 0, or nothing available
    everything,         // no more was available than asked for
    aligned_group,      // devices: 1, 4, 8 or 16 as the official scheduler groups them; any single device
    run,                // devices: consecutive on a ring or line
    connected,          // devices: another set in one piece
    scattered,          // devices: in several pieces
    core_range,         // cores: one range as the runtime counts
    core_scatter,       // cores: no such range was left
    near_devices,       // EFAs: beside the devices of the same container
    near_free_devices,  // EFAs: beside devices that are free as a set
    packed,             // EFAs: on few NUMA nodes and switches
    unrated,            // ids or a core numbering that the topology does not know
  };
  struct GroupsLeft {  // whole free ones after this choice; of2: behind one switch or EFA
    int of16 = 0;
    int of8 = 0;
    int of4 = 0;
    int of2 = 0;
    int of1 = 0;
    friend bool operator==(const GroupsLeft&, const GroupsLeft&) = default;
  };
  Kind kind = Kind::nothing;
  int units = 0;                          // chosen
  int devices = 0;                        // touched by devices and cores chosen
  int first_device = -1;                  // lowest index of them
  std::optional<int> hops;                // summed over all pairs; absent for one device or a switched fabric
  int numa_nodes = 0;                     // distinct known ones
  int switches = 0;                       // distinct known PCI groups
  std::optional<GroupsLeft> groups_left;  // devices and cores on a torus or switched fabric
  std::optional<int> nearest;  // with a hint: EFAs that are the nearest of a device, of those hinted or chosen
  std::vector<int> beside;     // EFAs: the devices, hinted or free, that have their nearest among them; ascending
  friend bool operator==(const Reason&, const Reason&) = default;
};

// "aligned group of 4, 8 hops, 0 NUMA crossings, leaves 3 groups of 4 whole": one line, never empty.
[[nodiscard]] std::string phrase(const Reason& reason);

struct Choice {
  std::vector<int> ids;  // ascending; `size` of them when available suffices, else all available
  std::string why;       // phrase(reason)
  Reason reason{};
};

// Aligned groups or runs where the fabric has them and one is free, else the set of fewest hops, connected if possible.
// Exact up to 16 available devices.
[[nodiscard]] Choice choose_devices(const NodeTopology& topology, const ChooseRequest& request);
// Cores whose numbers are one range as the runtime in the container counts: the last cores of the first device, whole
// devices, the first cores of the last device. `why` says so when no such range was left.
[[nodiscard]] Choice choose_cores(const NodeTopology& topology, const ChooseRequest& request);
// With prefer_devices, takes the nearest interface of each of these devices before a second one of any. Without, takes
// the interfaces of the set of free_devices that choose_devices would choose, else those on the fewest NUMA nodes and
// switches.
[[nodiscard]] Choice choose_efas(const NodeTopology& topology, const ChooseRequest& request);

// The reason of a choice made elsewhere, worked out from its ids: for programs that see an answer of the agent
// (neuron-sim kubelet). `request` is read as by the choosers; its size and must_include do not matter. `chosen` may be
// in any order; ids that the topology does not know make the kind `unrated`.
[[nodiscard]] Reason explain_devices(const NodeTopology& topology, const ChooseRequest& request,
                                     const std::vector<int>& chosen);
[[nodiscard]] Reason explain_cores(const NodeTopology& topology, const ChooseRequest& request,
                                   const std::vector<int>& chosen);
[[nodiscard]] Reason explain_efas(const NodeTopology& topology, const ChooseRequest& request,
                                  const std::vector<int>& chosen);

// The measures of fragmentation: the largest part of the free units that one container could still get. Of `free`
// devices: the largest set that the chooser would return and the runtime accepts, which is an aligned group of a torus,
// a run of a ring or line, or all of them where the fabric has no such shapes or is unknown. 0: none is free.
[[nodiscard]] int largest_of_devices(const NodeTopology& topology, const std::vector<int>& free);

// The most of the `free` cores that are one range as the runtime in a container counts.
[[nodiscard]] int largest_of_cores(const NodeTopology& topology, const std::vector<int>& free);

}  // namespace neuron::allocator
