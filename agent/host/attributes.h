#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/health/signals.h"
#include "agent/model/usage.h"

// Parsers of sysfs texts and names of directory entries. Pure functions over foreign input: bounded, no I/O, any
// thread. Every error is data_corrupt with a reason that does not name the path; the caller puts it in front.
namespace neuron::host {

// The driver registers at most 64 devices with at most 8 cores each; cores leave room for a future device.
inline constexpr int kMaxDevices = 64;
inline constexpr int kMaxCores = 32;

// The kernel's limits; a list with a larger number is malformed, or would take gigabytes.
inline constexpr int kMaxCpu = 8191;
inline constexpr int kMaxNumaNode = 1023;

// N of a class entry "neuron<N>": 0 to 9999, no leading zero. Other entries beside the devices (node_id_2, …) are
// nullopt.
[[nodiscard]] std::optional<int> device_index_of(std::string_view name);
// M of a folder "neuron_core<M>", 0 to kMaxCores - 1.
[[nodiscard]] std::optional<int> core_index_of(std::string_view name);
// N of "uverbs<N>", 0 to 9999.
[[nodiscard]] std::optional<int> uverbs_index_of(std::string_view name);
// An RDMA device name the kernel would accept: 1 to 63 of letters, digits, '_', '-', '.'.
[[nodiscard]] bool is_rdma_name(std::string_view name);

// A counter file: one decimal number.
[[nodiscard]] Result<std::uint64_t> parse_counter(std::string_view text);
// An ECC count of 16 bits. 65535 is read from a device off the bus (docs/reference/driver.md#off-the-bus); the health
// policy interprets it.
[[nodiscard]] Result<std::uint64_t> parse_ecc_count(std::string_view text);
// An HBM count, or the sum of up to four registers of 16 bits: 0 to 262140 (health/signals.h).
[[nodiscard]] Result<std::uint64_t> parse_hbm_count(std::string_view text);
// A kernel module's parameter: "0" and "N" are off, another number and "Y" on.
[[nodiscard]] std::optional<bool> parse_switch(std::string_view text);
// health_status/healthcheck_heartbeat: 0 to 255.
[[nodiscard]] Result<std::uint64_t> parse_heartbeat(std::string_view text);
// reset: 0, 1 or 2.
[[nodiscard]] Result<int> parse_reset_state(std::string_view text);
// Puts the text of the file `signal` into `signals`. After an error nothing is stored. health_status files say
// "device_unreachable" when the last register read failed; unhealthy_components are names joined by commas, in the
// driver's order.
[[nodiscard]] Result<void> store_signal(const health::DeviceSignal& signal, std::string_view text,
                                        model::DeviceSignals& signals);

// core_count: 1 to kMaxCores.
[[nodiscard]] Result<int> parse_core_count(std::string_view text);
// info/serial_number: 16 hex digits; "" (the driver could not read it) → nullopt.
[[nodiscard]] Result<std::optional<std::string>> parse_serial(std::string_view text);
// info/architecture/arch_type: "ND" or "NC" and a version.
[[nodiscard]] Result<std::string> parse_arch(std::string_view text);
// connected_devices: "12, 3, 4, 1" in the driver's order; "" → none.
[[nodiscard]] Result<std::vector<int>> parse_connected_devices(std::string_view text);
// stats/power/utilization, "POWER_STATUS_VALID,<epoch>,<min>,<max>,<average>": per cent with decimals, in any locale.
// nullopt for another status, the epoch 0 (nothing measured yet), and a number that is negative or above 1000.
[[nodiscard]] std::optional<model::PowerUsage> parse_power(std::string_view text);

// ultraserver_mode: numbers from 0 to 15 joined by commas, then ascending and distinct; 0 (unset) is left out; "" →
// none.
[[nodiscard]] Result<std::vector<int>> parse_ultraserver_modes(std::string_view text);
// server_id_<N>, reservation_id: 16 hexadecimal digits, then lower case; zeros, "invalid", "busy" and "" → nullopt.
[[nodiscard]] Result<std::optional<std::string>> parse_server_id(std::string_view text);
// node_id, node_id_<N>, node_cnt: 0 to 1023; "-1", "invalid", "busy" and "" → nullopt.
[[nodiscard]] Result<std::optional<int>> parse_node_id(std::string_view text);

// opt/aws/neuron/logical_nc_config: the last line NEURON_LOGICAL_NC_CONFIG=1 or 2 counts; blank lines and # are
// skipped.
[[nodiscard]] Result<int> parse_lnc_config(std::string_view text);
// board_asset_tag when it is an EC2 instance id ("i-" and hex digits), else "".
[[nodiscard]] std::string instance_id_of(std::string_view asset_tag);

// PCI numa_node: -1 (none) to kMaxNumaNode.
[[nodiscard]] Result<int> parse_numa_node(std::string_view text);
// PCI local_cpulist, up to kMaxCpu.
[[nodiscard]] Result<std::vector<int>> parse_cpu_list(std::string_view text);
// A key that functions behind the same PCI switch or host bridge share, from a function's resolved path: domain and bus
// of its parent, a switch port ("…/0000:b9:02.1/0000:cc:00.0" → "0000:b9") or a host bridge
// ("…/pci0000:10/0000:10:1b.0" → "0000:10"); docs/reference/topology.md#trn2-eight-switches. "" for any other path.
[[nodiscard]] std::string switch_key_of(std::string_view real_path);
// The host bridge above a function, from its resolved path: "sys/devices/pci0000:b8/0000:b9:02.1/0000:cc:00.0" →
// "pci0000:b8", which Kubernetes calls the PCIe root. "" for any other path.
[[nodiscard]] std::string pcie_root_of(std::string_view real_path);

}  // namespace neuron::host
