#pragma once

#include <sys/types.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/result.h"
#include "agent/core/catalogue.h"
#include "tools/neuron-sim/host_plan.h"

// The machine behind a plan, and the parts of its host directory.
namespace neuron::sim {

// One PCI function as it will stand in sysfs.
struct PciFunction {
  model::Bdf bdf;
  std::string path;  // "sys/devices/pci0000:10/0000:10:1b.0"
  std::uint16_t vendor = 0x1d0f;
  std::uint16_t device = 0;
  std::uint32_t class_code = 0;  // 24 bits, 0x088000
  int numa_node = -1;
  std::string driver;  // "" = unbound
};

// A bridge or switch port on the way to a function; the buses are those below it.
struct PciBridge {
  PciFunction function;
  std::uint8_t secondary_bus = 0;
  std::uint8_t subordinate_bus = 0;
};

struct NeuronFunction {
  int index = 0;  // the driver's N
  std::string serial;
  std::vector<int> neighbours;  // as the driver prints them: empty when it cannot know
  PciFunction pci;
};

// An RDMA-capable function: EFA, or the ConnectX that some GPU nodes carry for themselves.
struct RdmaFunction {
  std::string name;
  bool is_efa = true;
  int uverbs = 0;  // N of uverbsN; on purpose not in the order of the names
  PciFunction pci;
};

// Everything about a node that must be decided before files are written. Deterministic: no clock, no randomness.
struct MachinePlan {
  const core::InstanceType* type = nullptr;  // never null
  HostPlan options;                          // driver_version and instance_id filled in
  DriverGeneration driver;
  Platform platform = Platform::standard;
  std::vector<NeuronFunction> neurons;  // ascending index, without the missing ones
  std::vector<RdmaFunction> rdma;       // ascending BDF
  std::vector<PciFunction> others;      // an ENA and an NVMe function, as on every node
  std::vector<PciBridge> bridges;       // ascending BDF

  [[nodiscard]] bool has_driver() const { return type->family && !options.without.contains(Part::driver); }
  [[nodiscard]] bool has_uverbs() const { return !rdma.empty() && !options.without.contains(Part::uverbs); }
};

// Errors: invalid_argument, see write_host.
[[nodiscard]] Result<MachinePlan> plan_machine(const HostPlan& plan);

// A made-up but stable 64-bit number for a text: serial numbers, MAC addresses, instance ids.
[[nodiscard]] std::uint64_t stable_number(std::string_view text);

// A file of one line. Passive.
struct LineFile {
  std::string_view path;
  std::string_view text;
  mode_t mode = 0444;
  bool exists = true;  // else it is left out
};

// Makes many small files below one directory. Paths are relative to it; parent directories are made as needed. finish()
// removes the old content of the directory; files that are written again are overwritten instead, because ext4 takes
// seconds to reuse thousands of inodes that were just freed. Links found in the directory are removed or replaced,
// never followed.
//
// After the first failure every further call does nothing, and finish() returns that failure: callers need no checks.
// Not thread-safe.
class TreeWriter {
 public:
  // Errors: not_found, permission_denied: the directory must exist.
  [[nodiscard]] static Result<TreeWriter> open(const std::string& directory);

  void directory(std::string_view path);  // mode 0755, whatever the umask

  // A file with exactly that text and mode, whatever the umask; replaces one written before. Links that this object
  // wrote are followed among the parents of `path`.
  void file(std::string_view path, std::string_view text, mode_t mode = 0444);

  // file() for files of one line, given without its line feed.
  void line(std::string_view path, std::string_view text, mode_t mode = 0444) { lines("", {{path, text, mode}}); }
  void lines(const std::string& folder, std::initializer_list<LineFile> files);

  // A relative symbolic link at `path` to another path of this tree; the other end need not exist yet.
  void link(std::string_view path, std::string_view target);

  // A character device like /dev/null, mode 0666; an empty regular file where making one is not permitted.
  void device_node(std::string_view path);

  // Removes old entries that were not written again. Call once, at the end.
  [[nodiscard]] Result<void> finish();

 private:
  enum class Old { directory, file, other };

  TreeWriter(std::string root, Fd handle) : root_(std::move(root)), handle_(std::move(handle)) {}
  void find_old();
  void make_parent(const std::string& path);
  [[nodiscard]] bool replace_old(const std::string& path, Old wanted);
  void remove_old(const std::string& path, Old kind);
  [[nodiscard]] Fd open_for_writing(const std::string& path);
  void note_failure(int os_errno, const std::string& path);

  std::string root_;
  Fd handle_;
  std::map<std::string, Old> old_;               // found at the start and neither written again nor removed yet
  std::unordered_set<std::string> directories_;  // known to exist
  Result<void> state_;
};

// The text of a relative link at `from` that leads to `to`, both relative to the same root:
// ("a/b/link", "a/c/d") -> "../c/d".
[[nodiscard]] std::string relative_link(std::string_view from, std::string_view to);

// The parts of a host directory. Failures stay in the writer (TreeWriter::finish).

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

// Counters by name, to be split at blanks: below neuron_core<M>/stats/status and below stats/other_info.
inline constexpr std::string_view kStatusNames =
    "success failure timeout exec_bad_input hw_error execute_completed_with_error "
    "execute_completed_with_num_error generic_error resource_error resource_nc_error execute_failed_to_queue "
    "invalid_error unsupported_neff_version oob_error hw_collectives_error hw_hbm_ue_error hw_nc_ue_error "
    "hw_dma_abort_error execute_sw_nq_overflow execute_sw_semaphore_error execute_sw_event_error "
    "execute_sw_psum_collision execute_sw_sequencer_fatal hw_repairable_hbm_ue_error";
inline constexpr std::string_view kOtherInfoNames =
    "model_load_count reset_req_count reset_fail_count inference_count flop_count nc_time_in_use";

// Counters of EFA: below ports/1/hw_counters (the last five need Nitro v4, efa1 and later) and below hw_counters.
inline constexpr std::string_view kEfaPortCounters =
    "tx_bytes tx_pkts rx_bytes rx_pkts rx_drops send_bytes send_wrs recv_bytes recv_wrs rdma_read_wrs "
    "rdma_read_bytes rdma_read_wr_err rdma_read_resp_bytes rdma_write_wrs rdma_write_bytes rdma_write_wr_err "
    "rdma_write_recv_bytes retrans_bytes retrans_pkts retrans_timeout_events unresponsive_remote_events "
    "impaired_remote_conn_events";
inline constexpr std::string_view kEfaDeviceCounters =
    "submitted_cmds completed_cmds cmds_err no_completion_cmds keep_alive_rcvd alloc_pd_err create_qp_err "
    "create_cq_err reg_mr_err alloc_ucontext_err create_ah_err mmap_err alloc_mr_err get_dma_mr_err";

// "ffffffff,00000000": the kernel's cpumask form, `width` CPUs wide.
[[nodiscard]] std::string format_cpumask(const std::vector<int>& cpus, int width);

// CPUs of a NUMA node, as in local_cpulist: all CPUs for -1 or an unknown node.
[[nodiscard]] std::vector<int> cpus_of_node(const core::InstanceType& type, int numa_node);

// Number of CPUs the directory shows.
[[nodiscard]] int cpu_count(const core::InstanceType& type);

}  // namespace neuron::sim
