#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "agent/model/device.h"
#include "agent/model/kernel_log.h"
#include "agent/model/scan_part.h"
#include "agent/model/ultraserver.h"

namespace neuron::model {

// Which shape of the driver's sysfs was met (docs/reference/driver.md#driver-versions), chosen by probing, not by
// version text.
enum class DriverLayout {
  none,       // no /sys/class/neuron_device: driver not loaded
  bare,       // class directory and devices, but neither info/ nor stats/ (driver < 2.8)
  stats,      // info/ and stats/, no health_status: 2.8 .. 2.27
  health_v1,  // health_status with *_err_count: 2.28, 2.29
  health_v2,  // health_status with unhealthy_components, or corrected ECC files: 2.30.2
  unknown,    // devices are there but the known files are not: 2.31.7 and later. Values stay unknown, never zero
};

[[nodiscard]] std::string_view to_string(DriverLayout layout);  // the enumerator's name

// Parameters of the Neuron module that decide whether it measures health (docs/reference/driver.md#health-status);
// nullopt: not there, or not readable (they are for root only). Root may change them while the driver runs, which takes
// no effect until it is loaded anew.
struct DriverSettings {
  std::optional<bool> posts_metrics;       // sys/module/neuron/parameters/nmetric_log_posts is not 0
  std::optional<bool> shows_health_files;  // sys/module/neuron/parameters/enable_sysfs_health_status_nodes is not 0
  friend bool operator==(const DriverSettings&, const DriverSettings&) = default;
};

// CPUs of one NUMA node, from hwloc on the same root.
struct NumaNode {
  int index = 0;
  std::vector<int> cpus;  // ascending
  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

// Everything one scan saw, and once it is assessed what that means. Passive, comparable: two scans of an unchanged host
// are equal.
struct HostScan {
  std::string instance_type;       // sys/devices/virtual/dmi/id/product_name; "" when unknown
  std::string instance_id;         // sys/devices/virtual/dmi/id/board_asset_tag, "i-…"; "" when unknown
  std::string driver_version;      // sys/module/neuron/version; not always numeric; "" when unknown
  std::string efa_driver_version;  // sys/module/efa/version; "" when unknown
  DriverSettings driver_settings;
  DriverLayout layout = DriverLayout::none;
  Maybe<int> lnc;                     // physical cores per logical core, 1 or 2: opt/aws/neuron/logical_nc_config,
                                      // else assumed by family (2 on Trainium2/3, else 1); nullopt: neither
  std::vector<NeuronDevice> devices;  // ascending index; holes are normal
  std::vector<EfaInterface> efas;     // ascending BDF
  std::optional<UltraServer>
      ultraserver;                     // sys/class/neuron_device/ultraserver_mode and its like; nullopt: no such file
  std::vector<NumaNode> numa_nodes;    // ascending index; empty when hwloc could not load the root
  int neuron_pci_functions = 0;        // PCI functions 1d0f with a Neuron id, whether or not the driver shows them
  std::vector<Unanswered> unanswered;  // left out by this scan (monitor/watched_scan.h); ascending part, normally empty
  // Of devices, pci and efa_classes the lists that cannot be read and never were by this process, in this order: what
  // is on them is not known, so units that the scan lacks are not absent. Normally empty.
  std::vector<ScanPart> unread_lists;
  std::vector<ReadProblem> problems;  // of the host as a whole, bounded to 32
  KernelLog kernel_log;               // dev/kmsg, where it is asked for
  friend bool operator==(const HostScan&, const HostScan&) = default;
};

// Whether `list` is one of HostScan::unread_lists.
[[nodiscard]] inline bool is_unread_list(const HostScan& scan, ScanPart::Kind list) {
  return std::find(scan.unread_lists.begin(), scan.unread_lists.end(), ScanPart{list}) != scan.unread_lists.end();
}

}  // namespace neuron::model
