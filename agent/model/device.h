#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/model/health.h"

// Results of one scan of a machine: plain values, no I/O. An empty optional always means unknown: the file is absent,
// unreadable or malformed. It never stands for zero.
namespace neuron::model {

// The source of a value. `assumed` values are the official per-instance tables (agent/core/catalogue.h), used only
// where the host reports nothing, and shown as such.
enum class Origin { live, assumed };

template <typename T>
struct Sourced {
  T value{};
  Origin origin = Origin::live;
  friend bool operator==(const Sourced&, const Sourced&) = default;
};

template <typename T>
using Maybe = std::optional<Sourced<T>>;

// Kind of the unreadable part, for decisions; sentence() is the text.
enum class ProblemKind {
  file,               // a file, link or folder that cannot be read, or whose text makes no sense
  health_file,        // the same of a file that a device's health rests on (agent/health/signals.h)
  lnc_file,           // opt/aws/neuron/logical_nc_config: not read, not understood, or not for these devices
  no_device,          // the driver is loaded but shows no device
  unknown_layout,     // the driver's sysfs layout is unknown
  absent_neighbours,  // a device names neighbours that are not there; `detail` is their list, "3,7"
  missing_signals,    // health files that no device of a family shows though the driver should have them
  unanswered,         // a part of the scan that has not returned; it has no path
};

// Something of the machine that could not be read though it should, or made no sense. Passive data.
struct ReadProblem {
  ProblemKind kind = ProblemKind::file;
  std::string path;    // below the root; of several files a pattern; "" where there is none
  std::string detail;  // the problem, printable
  friend bool operator==(const ReadProblem&, const ReadProblem&) = default;
};

// The problem without the path: "not a number", "names missing devices: 3,7".
[[nodiscard]] std::string describe_problem(const ReadProblem& problem);

// One line: "<path>: <problem>".
[[nodiscard]] std::string sentence(const ReadProblem& problem);
[[nodiscard]] std::vector<std::string> sentences(const std::vector<ReadProblem>& problems);  // in their order

// Whether a device or interface was there when the machine was last scanned.
enum class Presence {
  present,
  vanished,       // it was, and is not any more: it keeps its place, with the facts that do not change
  unread,         // the list it would be on was never read (HostScan::unread_lists), and it is known as held
  not_answering,  // a read of it hangs (HostScan::unanswered): it keeps its place and the facts last seen
};

// PCI address; printed in full as "0000:10:1b.0".
struct Bdf {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t slot = 0;
  std::uint8_t function = 0;
  friend auto operator<=>(const Bdf&, const Bdf&) = default;
};

[[nodiscard]] std::string to_string(const Bdf& bdf);
// "dddd:bb:ss.f", hexadecimal, lower or upper case; short form "bb:ss.f" means domain 0. Anything else: nullopt.
[[nodiscard]] std::optional<Bdf> parse_bdf(std::string_view text);

// Device families: the driver's device_name. Decided by info/architecture/device_name, else by PCI id.
enum class Family { inferentia, inferentia2, trainium1, trainium2, trainium3 };

[[nodiscard]] std::string_view to_string(
    Family family);  // "Inferentia", "Inferentia2", "Trainium1", "Trainium2", "Trainium3"
[[nodiscard]] std::optional<Family> parse_family(std::string_view device_name);  // the same texts
// The family of a PCI device id of vendor 1d0f: docs/reference/driver.md#pci-ids-and-limits.
[[nodiscard]] std::optional<Family> family_of_pci_id(std::uint16_t device_id);

// One process that has a device open. The driver (ioctl 7, or a recorded answer) provides all members; proc/<pid>/fd
// only the pid, and the others are nullopt then.
struct Process {
  int pid = 0;                            // in the init pid namespace
  std::optional<std::uint8_t> core_mask;  // nc_lock_map: bit i = core i of the device
  std::optional<std::uint64_t> host_memory_bytes;
  std::optional<std::uint64_t> device_memory_bytes;
  friend bool operator==(const Process&, const Process&) = default;
};

// Both HBM counts in one number, as drivers up to 2.25.4 print them (docs/reference/driver.md#hbm-counts).
struct PackedHbmCount {
  std::uint64_t value = 0;     // 4096 × uncorrectable + repairable
  bool as_repairable = false;  // mem_ecc_repairable_uncorrected shows it, else mem_ecc_uncorrected
  friend bool operator==(const PackedHbmCount&, const PackedHbmCount&) = default;
};

// stats/ and health files of one device that the health policy reads. Counters are cumulative since driver load.
struct DeviceSignals {
  std::optional<std::uint64_t> sram_ecc_uncorrected;  // stats/hardware/sram_ecc_uncorrected
  std::optional<std::uint64_t> mem_ecc_uncorrected;   // stats/hardware/mem_ecc_uncorrected, unpacked
  // stats/hardware/mem_ecc_repairable_uncorrected, >= 2.23.9, unpacked; of older drivers that pack, from the other file
  std::optional<std::uint64_t> mem_ecc_repairable_uncorrected;
  std::optional<PackedHbmCount> hbm_packed;  // where the two above come from, if a file shows them packed and not 0
  std::optional<std::uint64_t> sram_ecc_corrected;  // stats/hardware/sram_ecc_corrected, >= 2.30.2
  std::optional<std::uint64_t> mem_ecc_corrected;   // stats/hardware/mem_ecc_corrected, >= 2.30.2
  // health_status/unhealthy_components, >= 2.30.2; empty = none
  std::optional<std::vector<std::string>> unhealthy_components;
  std::optional<bool> unreachable;                         // health_status files say device_unreachable
  std::optional<std::uint64_t> heartbeat;                  // health_status/healthcheck_heartbeat, 0..255 wrapping
  std::optional<std::uint64_t> hw_error_events;            // health_status/hw_error_event, >= 2.28
  std::optional<std::uint64_t> hbm_ecc_errors;             // health_status/hbm_ecc_err_count, 2.28 and 2.29
  std::optional<std::uint64_t> repairable_hbm_ecc_errors;  // health_status/repairable_hbm_ecc_err_count, 2.28, 2.29
  std::optional<std::uint64_t> sram_ecc_errors;            // health_status/sram_ecc_err_count, 2.28 and 2.29
  std::optional<int> reset_state;                          // reset: 0 reset, 1 ready, 2 invalid (root only)
  friend bool operator==(const DeviceSignals&, const DeviceSignals&) = default;
};

// stats/ of one physical core, neuron<N>/neuron_core<M>/. All `total` files.
struct CoreSignals {
  int physical_index = 0;                                   // M
  std::optional<std::uint64_t> device_memory_bytes;         // stats/memory_usage/device_mem/total: in use now
  std::optional<std::uint64_t> hw_error;                    // stats/status/hw_error/total
  std::optional<std::uint64_t> hw_hbm_ue_error;             // stats/status/hw_hbm_ue_error/total
  std::optional<std::uint64_t> hw_nc_ue_error;              // stats/status/hw_nc_ue_error/total
  std::optional<std::uint64_t> hw_dma_abort_error;          // stats/status/hw_dma_abort_error/total
  std::optional<std::uint64_t> hw_repairable_hbm_ue_error;  // stats/status/hw_repairable_hbm_ue_error/total, >= 2.23
  friend bool operator==(const CoreSignals&, const CoreSignals&) = default;
};

// Text of info/serial_number of a device off the bus: no serial number.
inline constexpr std::string_view kSerialOfOnes = "ffffffffffffffff";

// One Neuron device, /sys/class/neuron_device/neuron<index>.
struct NeuronDevice {
  int index = 0;                              // N; not PCI order
  Presence presence = Presence::present;      // of sys/class/neuron_device/neuron<N>
  std::optional<Family> family;               // info/architecture/device_name, else PCI id
  std::string arch;                           // info/architecture/arch_type, "NDv2"; "" when unknown
  std::optional<std::string> serial;          // info/serial_number, 16 hex digits
  bool serial_all_ones = false;               // it reads ones, as of a device off the bus: no serial (health::evaluate)
  Maybe<int> physical_cores;                  // core_count, else the neuron_core<M> directories, else the table
  Maybe<std::vector<int>> neighbours;         // connected_devices in driver order, else the table. Empty = none
  Maybe<Bdf> bdf;                             // driver query DEVICE_BDF_EXT; assumed only where the table is exact
  Maybe<int> numa_node;                       // PCI numa_node of the bdf, else the table; -1 = the platform has none
  Maybe<std::vector<int>> cpus;               // PCI local_cpulist of the bdf, else the table; ascending
  std::string pcie_root;                      // "pci0000:10": host bridge above the bdf; "" when unknown
  std::optional<std::uint64_t> memory_bytes;  // of the whole device (docs/reference/topology.md#instance-types)
  std::optional<std::vector<int>> logical_to_physical;  // driver ioctl 120: [logical position] = physical core
  // Driver ioctl 7, else proc/<pid>/fd (host/proc_files.h); nullopt = unknown, empty = none
  std::optional<std::vector<Process>> processes;
  bool node_present = false;  // dev/neuron<N> exists
  DeviceSignals signals;
  std::vector<CoreSignals> cores;     // by physical index, ascending; empty when the layout has no core folders
  std::vector<ReadProblem> problems;  // what could not be read though it should; bounded to 8
  // Found out, not read (agent/health/assess.h); a scan alone leaves both as they are here.
  Health health;                    // as a whole: its own fault, else that of its worst core
  std::vector<Health> core_health;  // [M] of neuron_core<M>; the device's own where the fault is not the core's; empty
                                    // where the core count is unknown
  friend bool operator==(const NeuronDevice&, const NeuronDevice&) = default;
};

// The one of that index in a list of devices or of what was measured of them; nullptr: none.
template <typename Device>
[[nodiscard]] const Device* find_device(const std::vector<Device>& devices, int index) {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const Device& one) { return one.index == index; });
  return found == devices.end() ? nullptr : &*found;
}

// One EFA interface: PCI function 1d0f:efaX.
struct EfaInterface {
  std::string name;  // RDMA name, /sys/class/infiniband/<name>; "" when the driver is not bound
  Bdf bdf;
  Presence presence = Presence::present;  // of sys/bus/pci/devices/<bdf>
  std::uint16_t pci_device_id = 0;        // sys/bus/pci/devices/<bdf>/device
  bool driver_bound = false;              // sys/bus/pci/devices/<bdf>/driver -> efa
  std::optional<std::string> uverbs;      // "uverbs3": sys/class/infiniband_verbs/uverbs3/ibdev equals name
  bool node_present = false;              // dev/infiniband/<uverbs> exists
  std::optional<int> numa_node;           // sys/bus/pci/devices/<bdf>/numa_node; -1 = none
  std::optional<std::vector<int>> cpus;   // sys/bus/pci/devices/<bdf>/local_cpulist
  std::optional<std::string> p2p;  // sys/bus/pci/devices/<bdf>/p2p: "NEURON", "NVIDIA", "" = none; nullopt = no file
  // Admin commands the device never answered: sys/class/infiniband/<name>/hw_counters/no_completion_cmds, in old
  // drivers ports/1/hw_counters/; since the driver was bound
  std::optional<std::uint64_t> no_completion_cmds;
  // The admin queue is closed, with drivers before r1.14: their counter cannot be read after that (ENODEV).
  bool admin_queue_closed = false;
  // dddd:bb of the PCI parent, port or host bridge (docs/reference/topology.md#trn2-eight-switches); "" when unknown
  std::string switch_key;
  std::string pcie_root;              // as in NeuronDevice
  std::vector<ReadProblem> problems;  // as in NeuronDevice
  Health health;                      // as in NeuronDevice
  friend bool operator==(const EfaInterface&, const EfaInterface&) = default;
};

}  // namespace neuron::model
