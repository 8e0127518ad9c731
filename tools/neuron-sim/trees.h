#pragma once

#include <map>
#include <optional>
#include <string>

#include "tools/neuron-sim/machine_plan.h"
#include "tools/neuron-sim/tree_writer.h"

// The parts of a host directory, one function each. Failures stay in the writer (TreeWriter::finish).
namespace neuron::sim {

// sys/devices/system/{cpu,node}, proc/{cpuinfo,meminfo}: enough for hwloc.
void write_processors(TreeWriter& tree, const MachinePlan& machine);

// DMI, module directories, proc/devices, the LNC file.
void write_platform(TreeWriter& tree, const MachinePlan& machine);

// sys/devices/pci*, sys/bus/pci: every function and bridge.
void write_pci(TreeWriter& tree, const MachinePlan& machine);

// sys/class/neuron_device and the virtual devices behind it, dev/neuron<N>, neuron-ioctl/. Nothing without a driver.
void write_neuron(TreeWriter& tree, const MachinePlan& machine);

// The class files about the UltraServer or partition of the node, by name (docs/reference/driver.md#class-files).
// `plan`: nullopt for the platform's own default.
[[nodiscard]] std::map<std::string, std::string> ultraserver_files(Platform platform, const DriverGeneration& driver,
                                                                   const std::optional<UltraServerPlan>& plan);

// infiniband, infiniband_verbs, dev/infiniband.
void write_rdma(TreeWriter& tree, const MachinePlan& machine);

// Host memory in bytes that the driver takes for itself when it starts, for a core (neuron_core<M>/stats/memory_usage);
// that of the device, driver_memory, is the sum (docs/reference/driver.md#idle-values).
[[nodiscard]] std::uint64_t own_host_memory(int core);

// The 24 names below neuron_core<M>/stats/status, and the counters below stats/other_info.
[[nodiscard]] const std::vector<std::string_view>& status_names();
[[nodiscard]] const std::vector<std::string_view>& other_info_names();

// EFA counters: names below ports/1/hw_counters (the last five need Nitro v4, efa1 and later) and hw_counters.
[[nodiscard]] const std::vector<std::string_view>& efa_port_counters();
[[nodiscard]] const std::vector<std::string_view>& efa_device_counters();

// "ffffffff,00000000": the kernel's cpumask form, `width` CPUs wide.
[[nodiscard]] std::string format_cpumask(const std::vector<int>& cpus, int width);

// CPUs of a NUMA node, as in local_cpulist: all CPUs for -1 or an unknown node.
[[nodiscard]] std::vector<int> cpus_of_node(const core::InstanceType& type, int numa_node);

// Number of CPUs the directory shows.
[[nodiscard]] int cpu_count(const core::InstanceType& type);

}  // namespace neuron::sim
