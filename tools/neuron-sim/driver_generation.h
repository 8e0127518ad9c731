#pragma once

#include <string_view>

#include "agent/base/result.h"
#include "agent/model/device.h"

namespace neuron::sim {

// Which health_status files a driver has (docs/reference/driver.md#health-status).
enum class HealthFiles { none, error_counts, components };

// Which server the driver takes the machine for, by DMI product name (docs/reference/driver.md#platform-classes).
enum class Platform { standard, ultraserver, pds, max };

// The shape of one driver version's sysfs, from 2.21.37 on (docs/reference/driver.md#driver-versions). Passive.
struct DriverGeneration {
  int minor = 30;                                // 2.<minor>
  bool known_layout = true;                      // false from 2.31: AWS moved files, nobody here knows where
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

}  // namespace neuron::sim
