#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/device.h"

// Simulated hosts: their options, and the function that writes one.
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

// Writes the host directory of `plan` (docs/fixtures.md) into `dir`, which is made if absent. A directory that is a
// simulated host already is cleared and written again; links in it are removed, never followed. Character devices
// become real ones that behave like /dev/null where the caller may make them, else regular files. A trn2.48xlarge takes
// under a second.
//
// Errors: invalid_argument (unknown type, with near matches; driver that does not drive the type; missing device out of
// range; LNC the family does not have); failed_precondition (`dir` holds something else); permission_denied, internal
// from the file system. After an error the directory may be half written. One writer per directory at a time.
[[nodiscard]] Result<void> write_host(const HostPlan& plan, const std::string& dir);

// Whether `dir` is a complete host that this version of neuron-sim writes for `plan`. Later faults and loads do not
// count. False for an invalid plan, and for root when plain files stand in place of device nodes (see write_host).
[[nodiscard]] bool is_host_of(const HostPlan& plan, const std::string& dir);

// Whether a device node of the simulated host `dir` is a plain file, because its writer was not permitted to make
// nodes.
[[nodiscard]] bool has_plain_files_for_devices(const std::string& dir);

// The host that write_host would make, in one line: "trn1.32xlarge, driver 2.30.2.0: 16 devices, 8 EFA interfaces".
// Errors: invalid_argument as above. No I/O.
[[nodiscard]] Result<std::string> describe(const HostPlan& plan);

// The health_status files of a driver (docs/reference/driver.md#health-status).
enum class HealthFiles { none, error_counts, components };

// The platform class that the driver derives from the DMI product name (docs/reference/driver.md#platform-classes).
enum class Platform { standard, ultraserver, pds, max };

// The shape of the sysfs of driver 2.<minor>, from 2.21.37 on (docs/reference/driver.md#driver-versions).
struct DriverGeneration {
  int minor = 30;
  [[nodiscard]] bool known_layout() const { return minor <= 30; }     // later: files moved, the new layout is unknown
  [[nodiscard]] bool readable_counts() const { return minor >= 28; }  // core_count, connected_devices: 0444, not 0400
  [[nodiscard]] HealthFiles health() const {                          // on Trainium2 and 3 only
    return minor >= 30 ? HealthFiles::components : minor >= 28 ? HealthFiles::error_counts : HealthFiles::none;
  }
  [[nodiscard]] bool repairable_ecc() const { return minor >= 23; }   // repairable HBM errors of devices and cores
  [[nodiscard]] bool tensor_counters() const { return minor >= 23; }  // pe_cntrs; not on Inferentia 1
  [[nodiscard]] bool valid_without_power() const {
    return minor >= 25;
  }                                                             // power/utilization: VALID before a measurement
  [[nodiscard]] bool raw_power() const { return minor >= 29; }  // power/utilization_raw
  [[nodiscard]] bool corrected_ecc() const { return minor >= 30; }
  [[nodiscard]] bool firmware_files() const { return minor >= 30; }        // fw_api_version, fw_build
  [[nodiscard]] bool class_files_by_size() const { return minor >= 23; }   // node_id_2, node_id_4 and so on
  [[nodiscard]] bool platform_class_files() const { return minor >= 30; }  // class files differ by platform
};

// "2.21.37.0" to "2.31.7.0" and later. A minor that is no number (Bottlerocket's 2.x.8072.0) counts as 2.26.
// Errors: invalid_argument for other text and for versions before 2.21.
[[nodiscard]] Result<DriverGeneration> generation_of(std::string_view version);

// Whether that driver has code for the family: Inferentia 1 up to 2.24, Trainium3 from 2.25.
// Errors: invalid_argument with a sentence.
[[nodiscard]] Result<void> check_drives(const DriverGeneration& generation, model::Family family);

[[nodiscard]] Platform platform_of(std::string_view instance_type, const DriverGeneration& generation);

}  // namespace neuron::sim
