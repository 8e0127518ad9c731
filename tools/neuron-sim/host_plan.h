#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/device.h"

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

// The UltraServer or partition of a node in the driver's class files (docs/reference/driver.md#elections), the value of
// --ultraserver. Passive.
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

// Names of RDMA devices (docs/reference/efa.md#names).
enum class RdmaNaming {
  by_path,    // rdma-core's udev helper: rdmap16s25
  by_kernel,  // no udev: efa_0, efa_1, ... in BDF order
};

// The host that write_host makes. Passive; the defaults give a healthy idle node.
struct HostPlan {
  std::string instance_type;   // a name of the catalogue, "trn1.32xlarge"
  std::string driver_version;  // "" = the newest that drives this family: 2.30.2.0, for Inferentia 1 2.24.7.0
  std::optional<int> lnc;      // 1 or 2: writes opt/aws/neuron/logical_nc_config; nullopt = no such file
  std::vector<int> missing;    // device indices that are absent everywhere, PCI included
  std::set<Part> without;
  std::string instance_id;  // "" = made up from the type
  RdmaNaming naming = RdmaNaming::by_path;
  std::optional<UltraServerPlan> ultraserver;  // nullopt = as the platform has it: UltraServers node 0 of 4
  std::map<std::string, std::string> files;  // path below the directory -> text; written last, replacing existing files
};

// Which health_status files a driver has (docs/reference/driver.md#health-status).
enum class HealthFiles { none, error_counts, components };

// The platform class that the driver derives from the DMI product name (docs/reference/driver.md#platform-classes).
enum class Platform { standard, ultraserver, pds, max };

// The shape of one driver version's sysfs, from 2.21.37 on (docs/reference/driver.md#driver-versions). Passive.
struct DriverGeneration {
  int minor = 30;                                // 2.<minor>
  bool known_layout = true;                      // false from 2.31: files moved, the new layout is unknown
  bool readable_counts = true;                   // core_count and connected_devices 0444 instead of 0400, from 2.28
  HealthFiles health = HealthFiles::components;  // on Trainium2 and 3 only
  bool repairable_ecc = true;                    // repairable HBM errors of devices and cores, from 2.23.9
  bool tensor_counters = true;                   // pe_cntrs, from 2.23.9; not on Inferentia 1
  bool valid_without_power = true;               // power/utilization says VALID before it is measured, from 2.25.4
  bool raw_power = true;                         // power/utilization_raw, from 2.29
  bool corrected_ecc = true;                     // from 2.30.2
  bool firmware_files = true;                    // fw_api_version, fw_build, from 2.30.2
  bool class_files_by_size = true;               // node_id_2, node_id_4 and so on, from 2.23.9
  bool platform_class_files = true;              // class files differ by platform, from 2.30.2
};

// "2.21.37.0" to "2.31.7.0" and later. A minor that is no number (Bottlerocket's 2.x.8072.0) counts as 2.26.
// Errors: invalid_argument for other text and for versions before 2.21.
[[nodiscard]] Result<DriverGeneration> generation_of(std::string_view version);

// Whether that driver has code for the family: Inferentia 1 up to 2.24, Trainium3 from 2.25.
// Errors: invalid_argument with a sentence.
[[nodiscard]] Result<void> check_drives(const DriverGeneration& generation, model::Family family);

[[nodiscard]] Platform platform_of(std::string_view instance_type, const DriverGeneration& generation);

// At most five of `names` that resemble a misspelled `text`, nearest first: few edits away, or the same up to the first
// dot. Empty when nothing is near. Pure.
[[nodiscard]] std::vector<std::string> near_matches(std::string_view text, const std::vector<std::string>& names);
// The same as the end of an error: "; did you mean trn1.2xlarge, trn1.32xlarge?", or "".
[[nodiscard]] std::string did_you_mean(std::string_view text, const std::vector<std::string>& names);

}  // namespace neuron::sim
