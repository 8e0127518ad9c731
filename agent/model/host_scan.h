#pragma once

#include <algorithm>
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/device.h"

namespace neuron::model {

// The layout of the driver's sysfs (docs/reference/driver.md#driver-versions), found by probing, not by version text.
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
// no effect until it is reloaded.
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

// Several servers whose devices are linked, as far as the driver knows of it: files in sys/class/neuron_device
// (docs/reference/driver.md#class-files).
struct UltraServer {
  // This node among those it may be linked with.
  struct Membership {
    int nodes = 0;          // 2 or 4, of server_id_<N> and node_id_<N>, or node_cnt of a partition; 0: not known
    std::string server_id;  // 16 lower case hexadecimal digits, not all zero; equal on all its nodes
    int node_id = 0;        // from 0
    friend bool operator==(const Membership&, const Membership&) = default;
  };
  bool busy = false;                                  // ultraserver_mode: the election has not ended (core::Election)
  std::vector<int> modes;                             // ultraserver_mode: 1 X4, 2 X2H, 3 X2V, 4 X1; ascending
  std::vector<Membership> memberships;                // ascending nodes; empty: linked with no other node
  std::optional<int> partition_nodes = std::nullopt;  // node_cnt: nodes of this node's partition, 0 for none; nullopt:
                                                      // the driver numbers by size (server_id_<N>)
  friend bool operator==(const UltraServer&, const UltraServer&) = default;
};

// A part of a scan that may hang by itself, so that it can be left out and the rest be read.
struct ScanPart {
  enum class Kind {
    host,         // DMI, driver versions, LNC file, kernel log
    pci,          // sys/bus/pci/devices: the list, vendor and device of each
    topology,     // hwloc
    devices,      // the list of sys/class/neuron_device
    device,       // sys/class/neuron_device/neuron<index>: identity, health
    memory,       // the same, neuron_core<M>/stats/memory_usage: shown only, no verdict rests on it
    driver,       // queries of dev/neuron<index>, and the PCI function that it names
    efa_classes,  // the lists of sys/class/infiniband and infiniband_verbs
    verbs,        // sys/class/infiniband_verbs/uverbs<index>
    efa,          // sys/bus/pci/devices/<bdf>
  };
  Kind kind = Kind::host;
  int index = 0;  // of device, memory, driver and verbs
  Bdf bdf{};      // of efa
  friend auto operator<=>(const ScanPart&, const ScanPart&) = default;
};

[[nodiscard]] std::string to_string(const ScanPart& part);  // "reading sys/class/neuron_device/neuron3"

// Called before each part of a scan is read, on the scanning thread; false leaves it out. The call also shows that the
// part before it has been read.
using MayRead = std::function<bool(const ScanPart&)>;

// A part that a scan left out, since an earlier read of it has not returned.
struct Unanswered {
  ScanPart part;
  std::string since;  // when that read began, UTC: "2026-01-31T23:59:59Z"
  friend bool operator==(const Unanswered&, const Unanswered&) = default;
};

// Kinds of error in a NEURON_HW_ERR= line (docs/reference/driver.md#kernel-log).
enum class KernelErrorKind {
  sram,            // SRAM_UNCORRECTABLE_ERROR
  core,            // NC_UNCORRECTABLE_ERROR
  hbm,             // HBM_UNCORRECTABLE_ERROR
  hbm_repairable,  // a word with REPAIRABLE in it: the exact word is not published (inferred)
  dma,             // DMA_ERROR
  collectives,     // HANG_ON_COLLECTIVES
  other,           // any other word
};

// Lines of one kind about one device and core, or about none. Passive data.
struct KernelLogError {
  KernelErrorKind kind = KernelErrorKind::other;
  std::string name;                      // the word of the first line: capitals, digits, '_', at most 64
  std::optional<int> device;             // nd-id: N of neuron<N>, which was there; nullopt: the line names none
  std::optional<int> core;               // nc-id; nullopt also where no device is named
  std::optional<std::string> serial;     // serial-num, 16 hex digits, lower case
  std::string action;                    // "TERMINATE_INSTANCE"; "" where the first line names none
  std::uint64_t lines = 0;               // how many there were
  std::chrono::microseconds first_at{};  // of the first and the newest of them; the kernel's clock, since boot
  std::chrono::microseconds last_at{};
  friend bool operator==(const KernelLogError&, const KernelLogError&) = default;
};

enum class KernelLogState {
  off,      // not requested
  reading,  // as far as the kernel still had it when it was read
  denied,   // it may not be opened
  broken,   // it is not there, or a read failed
};

[[nodiscard]] std::string_view to_string(KernelLogState state);  // the enumerator's name

// Neuron hardware errors in the kernel log since the driver was loaded (agent/host/kernel_log.h). Passive data.
struct KernelLog {
  KernelLogState state = KernelLogState::off;
  std::optional<ReadProblem> problem;  // why it is denied or broken; in HostScan::problems too
  std::uint64_t lost_records = 0;      // that the kernel overwrote before they were read, since reading began
  std::uint64_t ignored_lines = 0;     // NEURON_HW_ERR= lines that are malformed or name missing hardware, likewise
  std::vector<KernelLogError> errors;  // ascending device (none first), kind, core; at most one of each
  // Assessed (agent/health/assess.h): the verdict on the node by the lines that name no device. They withhold no
  // device. Not assessed unless the log is read.
  Health node_health;
  friend bool operator==(const KernelLog&, const KernelLog&) = default;
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
  bool lnc_is_unread = false;         // that file never was read by this process, and may be there: on devices with a
                                      // choice of LNC none is assumed
  std::vector<NeuronDevice> devices;  // ascending index; holes are normal
  std::vector<EfaInterface> efas;     // ascending BDF
  std::optional<UltraServer>
      ultraserver;                     // sys/class/neuron_device/ultraserver_mode and its like; nullopt: no such file
  bool ultraserver_is_unread = false;  // one of these files likewise: the node may be in an UltraServer
  std::vector<NumaNode> numa_nodes;    // ascending index; empty when hwloc could not load the root
  int neuron_pci_functions = 0;        // PCI functions 1d0f with a Neuron id, whether or not the driver shows them
  std::vector<Unanswered> unanswered;  // left out by this scan (monitor/watched_scan.h); ascending part, normally empty
  // The lists among devices, pci and efa_classes, in this order, that this process has never been able to read: their
  // contents are unknown, so units that the scan lacks are not absent. Normally empty.
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
