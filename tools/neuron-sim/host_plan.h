#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"

namespace neuron::sim {

// A part of a node that may be left out, the value of --without.
enum class Part {
  efa,     // no EFA functions at all
  uverbs,  // EFA is bound, but ib_uverbs is not loaded: no verbs class, no nodes
  ioctl,   // no recorded driver answers
  driver,  // Neuron PCI functions without the Neuron driver: no class, no nodes, no module
};

// "efa", "uverbs", "ioctl", "driver". Errors: invalid_argument naming the four.
[[nodiscard]] Result<Part> parse_part(std::string_view text);

// What the class files say of the UltraServer or the partition that a node is part of
// (docs/reference/driver.md#elections), the value of --ultraserver. Passive.
struct UltraServerPlan {
  enum class State {
    linked,  // node `node` of `nodes`
    busy,    // the election has not ended
    alone,   // it has, and found no other node
  };
  State state = State::linked;
  int nodes = 4;  // 2 or 4
  int node = 0;   // from 0
};

// "busy", "alone", "2" or "4", and "4:3" for node 3 of 4. Errors: invalid_argument naming these.
[[nodiscard]] Result<UltraServerPlan> parse_ultraserver(std::string_view text);

// How RDMA devices are called (docs/reference/efa.md#names).
enum class RdmaNaming {
  by_path,    // rdma-core's udev helper: rdmap16s25
  by_kernel,  // no udev: efa_0, efa_1, ... in BDF order
};

// What write_host makes. Passive; the defaults give a healthy idle node.
struct HostPlan {
  std::string instance_type;   // a name of the catalogue, "trn1.32xlarge"
  std::string driver_version;  // "" = the newest that drives this family: 2.30.2.0, for Inferentia 1 2.24.7.0
  std::optional<int> lnc;      // 1 or 2: writes opt/aws/neuron/logical_nc_config; nullopt = no such file
  std::vector<int> missing;    // device indices that are absent everywhere, PCI included
  std::set<Part> without;
  std::string instance_id;  // "" = made up from the type
  RdmaNaming naming = RdmaNaming::by_path;
  std::optional<UltraServerPlan> ultraserver;  // nullopt = as the platform has it: UltraServers node 0 of 4
  std::map<std::string, std::string> files;  // path below the directory -> text; written last, replacing what is there
};

}  // namespace neuron::sim
