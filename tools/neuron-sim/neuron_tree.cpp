#include <array>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

using model::Family;

constexpr mode_t kClearable = 0644;  // total, present and peak clear on write, hence their mode

struct FamilyTexts {
  std::string_view device_arch;
  std::string_view core_arch;
  std::string_view instance_type;
  std::string_view device_name;
};

FamilyTexts texts_of(Family family) {
  switch (family) {
    case Family::inferentia:
      return {"NDv1", "NCv1", "Inf1", "Inferentia"};
    case Family::trainium1:
      return {"NDv2", "NCv2", "Trn1", "Trainium1"};
    case Family::inferentia2:
      return {"NDv3", "NCv2", "Inf2", "Inferentia2"};
    case Family::trainium2:
      return {"NDv3", "NCv3", "Trn2", "Trainium2"};
    case Family::trainium3:
      return {"NDv4", "NCv4", "Trn3", "Trainium3"};
  }
  return {};
}

bool has_health_files(Family family) {
  return family == Family::trainium2 || family == Family::trainium3;
}

constexpr std::array<std::string_view, 8> kHostKinds = {"dma_buffers",        "tensors",       "constants",
                                                        "application_memory", "driver_memory", "notifications",
                                                        "dma_rings",          "uncategorized"};
constexpr std::array<std::string_view, 11> kDeviceKinds = {
    "model_code",     "tensors",       "constants",    "model_shared_scratchpad",
    "runtime_memory", "driver_memory", "collectives",  "nonshared_scratchpad",
    "notifications",  "dma_rings",     "uncategorized"};

std::string line(std::string_view text) {
  return std::string(text) + "\n";
}

void counter(TreeWriter& tree, const std::string& folder, std::uint64_t total = 0, std::uint64_t present = 0) {
  tree.file(folder + "/total", std::to_string(total) + "\n", kClearable);
  tree.file(folder + "/present", std::to_string(present) + "\n", kClearable);
}

void memory(TreeWriter& tree, const std::string& folder, std::uint64_t total = 0) {
  constexpr std::uint64_t kLastAllocation = 4096;
  counter(tree, folder, total, total > 0 ? kLastAllocation : 0);
  tree.file(folder + "/peak", std::to_string(total) + "\n", kClearable);
}

void write_info(TreeWriter& tree, const MachinePlan& machine, const NeuronFunction& neuron, const std::string& base) {
  const auto texts = texts_of(*machine.type->family);
  tree.file(base + "/info/notify_delay", "-1\n", 0644);
  if (machine.type->family != Family::inferentia) tree.file(base + "/info/serial_number", line(neuron.serial), 0644);
  tree.file(base + "/info/architecture/arch_type", line(texts.device_arch), 0644);
  tree.file(base + "/info/architecture/instance_type", line(texts.instance_type), 0644);
  tree.file(base + "/info/architecture/device_name", line(texts.device_name), 0644);
}

void write_hardware(TreeWriter& tree, const MachinePlan& machine, const std::string& folder) {
  const Family family = *machine.type->family;
  if (family == Family::inferentia) return;
  tree.file(folder + "/sram_ecc_uncorrected", "0\n", 0644);
  tree.file(folder + "/mem_ecc_uncorrected", "0\n", 0644);
  if (machine.driver.repairable_ecc) tree.file(folder + "/mem_ecc_repairable_uncorrected", "0\n", 0644);
  if (machine.driver.corrected_ecc) {
    tree.file(folder + "/sram_ecc_corrected", "0\n", 0644);
    tree.file(folder + "/mem_ecc_corrected", "0\n", 0644);
  }
  if (!has_health_files(family)) return;
  const std::string health = folder + "/health_status/";
  switch (machine.driver.health) {
    case HealthFiles::none:
      return;
    case HealthFiles::error_counts:
      for (const char* name : {"hbm_ecc_err_count", "repairable_hbm_ecc_err_count", "sram_ecc_err_count"}) {
        tree.file(health + name, "0\n");
      }
      break;
    case HealthFiles::components:
      tree.file(health + "unhealthy_components", "\n");
      tree.file(health + "healthcheck_heartbeat", "17\n");
      break;
  }
  tree.file(health + "hw_error_event", "0\n");
}

// Before the first minute of the wall clock has passed: nothing is measured yet, whatever the status.
void write_power(TreeWriter& tree, const MachinePlan& machine, const std::string& folder) {
  const std::string status = machine.driver.valid_without_power ? "POWER_STATUS_VALID" : "POWER_STATUS_NO_DATA";
  tree.file(folder + "/utilization", status + ",0,0.00,0.00,0.00\n", 0644);
  if (!machine.driver.raw_power) return;
  const bool two_dies = has_health_files(*machine.type->family);
  tree.file(folder + "/utilization_raw",
            std::string("die,util_bips,counter\n0,unavailable\n") + (two_dies ? "1,unavailable\n" : ""), 0644);
}

void write_core(TreeWriter& tree, const MachinePlan& machine, const std::string& base, int core) {
  tree.file(base + "/info/architecture/arch_type", line(texts_of(*machine.type->family).core_arch), 0644);
  for (const auto name : status_names()) {
    if (name == "hw_repairable_hbm_ue_error" && !machine.driver.repairable_ecc) continue;
    counter(tree, base + "/stats/status/" + std::string(name));
  }
  for (const auto name : other_info_names()) {
    const std::uint64_t count = name == "reset_req_count" ? 1 : 0;  // the reset at the start
    counter(tree, base + "/stats/other_info/" + std::string(name), count, count);
  }
  const std::string usage = base + "/stats/memory_usage/";
  memory(tree, usage + "host_mem", own_host_memory(core));
  memory(tree, usage + "device_mem");
  for (const auto kind : kDeviceKinds) memory(tree, usage + "device_mem/" + std::string(kind));
  if (machine.type->family == Family::inferentia || !machine.driver.tensor_counters) return;
  tree.file(base + "/stats/tensor_engine/pe_cntrs",
            "xrow_grp,mm_active,wl_active,idle\n0,0,0,0\n1,0,0,0\n2,0,0,0\n3,0,0,0\n", 0644);
}

using State = UltraServerPlan::State;
using Texts = std::map<std::string, std::string>;

constexpr const char* kNone = "0000000000000000\n";
constexpr std::uint64_t kServerId = 0x8f10b6e35a7c92d4;
constexpr std::uint64_t kPartitionId = 1;  // driver 2.26: the default of its parameter userver_pds_server_id

std::string server_id(std::uint64_t id) {
  char text[18];
  std::snprintf(text, sizeof text, "%016" PRIx64 "\n", id);
  return text;
}

// Four nodes can work by two as well, over their vertical links (3). Two servers of an UltraServer find each other over
// the horizontal links (2), two of a partition over the vertical ones.
std::string modes_of(const UltraServerPlan& plan, bool is_partition) {
  if (plan.state == State::busy) return "busy\n";
  if (plan.state == State::alone) return "4\n";
  if (plan.nodes == 4) return "1,3,4\n";
  return is_partition ? "3,4\n" : "2,4\n";
}

// The driver counts a pair of the four from 0, and gives the second pair another id.
Texts files_by_size(const UltraServerPlan& plan, bool is_partition) {
  const bool busy = plan.state == State::busy;
  const std::string no_node = busy ? "busy\n" : "-1\n";
  Texts texts{{"node_id_2", no_node},
              {"node_id_4", no_node},
              {"server_id_2", kNone},
              {"server_id_4", kNone},
              {"ultraserver_mode", modes_of(plan, is_partition)}};
  if (plan.state != State::linked) return texts;
  const std::uint64_t id = is_partition ? kPartitionId : kServerId;
  const bool is_second_pair = plan.node >= 2;
  texts["node_id_2"] = std::to_string(plan.node % 2) + "\n";
  texts["server_id_2"] = server_id(is_second_pair ? id - 1 : id);
  if (plan.nodes != 4) return texts;
  texts["node_id_4"] = std::to_string(plan.node) + "\n";
  texts["server_id_4"] = server_id(id);
  return texts;
}

Texts files_of_partition(const UltraServerPlan& plan) {
  const bool busy = plan.state == State::busy;
  const bool linked = plan.state == State::linked;
  return {{"node_id", busy ? "busy\n" : std::to_string(linked ? plan.node : -1) + "\n"},
          {"node_cnt", busy ? "busy\n" : std::to_string(linked ? plan.nodes : 0) + "\n"},
          {"reservation_id", linked ? server_id(kServerId) : kNone},
          {"ultraserver_mode", modes_of(plan, true)}};
}

constexpr const char* kClass = "sys/class/neuron_device/";

std::string joined(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text;
}

// info/, stats/ and neuron_core<M>/ of one device below `base`, for a driver of known layout
// (docs/reference/driver.md#device-counters).
void write_device_stats(TreeWriter& tree, const MachinePlan& machine, const NeuronFunction& neuron,
                        const std::string& base) {
  write_info(tree, machine, neuron, base);
  write_hardware(tree, machine, base + "/stats/hardware");
  const int cores = machine.type->physical_cores_per_device;
  std::uint64_t own = 0;
  for (int core = 0; core < cores; ++core) own += own_host_memory(core);
  for (const auto kind : kHostKinds) {
    memory(tree, base + "/stats/memory_usage/host_mem/" + std::string(kind), kind == "driver_memory" ? own : 0);
  }
  write_power(tree, machine, base + "/stats/power");
  for (int core = 0; core < cores; ++core)
    write_core(tree, machine, base + "/neuron_core" + std::to_string(core), core);
}

// The order of physical cores that the driver would report (docs/reference/driver.md#logical-cores). Platforms with
// switches have a table of their own, in which driver 2.30.2 differs from earlier ones for odd devices.
std::vector<int> core_order(const MachinePlan& machine, int index) {
  const bool switched = machine.platform == Platform::pds || machine.platform == Platform::max;
  if (switched && machine.type->family == model::Family::trainium3) {
    if (index % 2 == 0) return {4, 5, 6, 7, 2, 3, 0, 1};
    if (machine.driver.minor >= 30) return {6, 7, 4, 5, 0, 1, 2, 3};
    return {2, 3, 0, 1, 4, 5, 6, 7};
  }
  return core::assumed_logical_to_physical(*machine.type->family, index, machine.type->physical_cores_per_device);
}

// The driver's recorded answers (docs/fixtures.md#recorded-answers).
std::string driver_answers(const MachinePlan& machine, const NeuronFunction& neuron) {
  return "{ \"bdf\": \"" + model::to_string(neuron.pci.bdf) + "\",\n  \"apps\": [],\n  \"logical_to_physical\": [" +
         joined(core_order(machine, neuron.index)) + "] }\n";
}

// Files next to the neuron<N> links.
void write_class_files(TreeWriter& tree, const MachinePlan& machine) {
  for (const auto& [name, text] : ultraserver_files(machine.platform, machine.driver, machine.options.ultraserver)) {
    tree.file(kClass + name, text);
  }
  if (!machine.driver.platform_class_files) return;
  tree.file(std::string(kClass) + "hbm_7200_capable", "0\n");
  tree.file(std::string(kClass) + "current_perf_profile", "0\n");
}

// A driver of unknown layout: the folders are made up, so that a reader must notice.
void write_moved(TreeWriter& tree, const MachinePlan& machine, const NeuronFunction& neuron, const std::string& base) {
  tree.file(base + "/device/topology/cores", std::to_string(machine.type->physical_cores_per_device) + "\n");
  tree.file(base + "/device/topology/links", joined(neuron.neighbours) + "\n");
  tree.file(base + "/device/identity/serial", neuron.serial + "\n");
  tree.file(base + "/telemetry/ecc/sram/uncorrected", "0\n");
  tree.file(base + "/telemetry/ecc/hbm/uncorrected", "0\n");
  tree.file(base + "/telemetry/health/components", "\n");
  for (int core = 0; core < machine.type->physical_cores_per_device; ++core) {
    tree.file(base + "/cores/" + std::to_string(core) + "/telemetry/busy_us", "0\n");
  }
}

void write_device(TreeWriter& tree, const MachinePlan& machine, const NeuronFunction& neuron) {
  const auto& driver = machine.driver;
  const std::string name = "neuron" + std::to_string(neuron.index);
  const std::string minor = std::to_string(neuron.index);
  const std::string base = "sys/devices/virtual/neuron_device/" + name;
  tree.file(base + "/dev", "239:" + minor + "\n");
  tree.file(base + "/uevent", "MAJOR=239\nMINOR=" + minor + "\nDEVNAME=" + name + "\n", 0644);
  tree.file(base + "/power/control", "auto\n", 0644);
  tree.file(base + "/power/runtime_status", "unsupported\n");
  tree.link(base + "/subsystem", "sys/class/neuron_device");
  tree.link(kClass + name, base);
  if (driver.known_layout) {
    const mode_t mode = driver.readable_counts ? 0444 : 0400;
    tree.file(base + "/core_count", std::to_string(machine.type->physical_cores_per_device), mode);  // no newline
    tree.file(base + "/connected_devices", joined(neuron.neighbours) + "\n", mode);
    tree.file(base + "/reset", "1\n", 0600);
    if (driver.firmware_files) {
      tree.file(base + "/fw_api_version", "7\n");
      tree.file(base + "/fw_build", "5121\n");
    }
    write_device_stats(tree, machine, neuron, base);
  } else {
    write_moved(tree, machine, neuron, base);
  }
  tree.device_node("dev/" + name);
  if (!machine.options.without.contains(Part::ioctl)) {
    tree.file("neuron-ioctl/" + name + ".json", driver_answers(machine, neuron), 0644);
  }
}

}  // namespace

std::uint64_t own_host_memory(int core) {
  constexpr std::uint64_t kOfCore = 266240;
  constexpr std::uint64_t kOfDevice = 4263936;
  return core == 0 ? kOfDevice + kOfCore : kOfCore;
}

const std::vector<std::string_view>& status_names() {
  static const std::vector<std::string_view> kNames = {"success",
                                                       "failure",
                                                       "timeout",
                                                       "exec_bad_input",
                                                       "hw_error",
                                                       "execute_completed_with_error",
                                                       "execute_completed_with_num_error",
                                                       "generic_error",
                                                       "resource_error",
                                                       "resource_nc_error",
                                                       "execute_failed_to_queue",
                                                       "invalid_error",
                                                       "unsupported_neff_version",
                                                       "oob_error",
                                                       "hw_collectives_error",
                                                       "hw_hbm_ue_error",
                                                       "hw_nc_ue_error",
                                                       "hw_dma_abort_error",
                                                       "execute_sw_nq_overflow",
                                                       "execute_sw_semaphore_error",
                                                       "execute_sw_event_error",
                                                       "execute_sw_psum_collision",
                                                       "execute_sw_sequencer_fatal",
                                                       "hw_repairable_hbm_ue_error"};
  return kNames;
}

const std::vector<std::string_view>& other_info_names() {
  static const std::vector<std::string_view> kNames = {"model_load_count", "reset_req_count", "reset_fail_count",
                                                       "inference_count",  "flop_count",      "nc_time_in_use"};
  return kNames;
}

Texts ultraserver_files(Platform platform, const DriverGeneration& driver, const std::optional<UltraServerPlan>& plan) {
  const bool is_partition = platform == Platform::pds || platform == Platform::max;
  if (!driver.class_files_by_size) {  // 2.22.2 shows its own number alone, 2.21.37 nothing
    if (driver.minor < 22) return {};
    const bool linked = platform == Platform::ultraserver && (!plan || plan->state == State::linked);
    const bool busy = plan && plan->state == State::busy;
    return {{"node_id", busy     ? "busy\n"
                        : linked ? std::to_string(plan ? plan->node : 0) + "\n"
                                 : "-1\n"},
            {"server_id", linked ? server_id(kServerId) : kNone}};
  }
  if (platform == Platform::standard) {
    if (driver.platform_class_files) return {};
    Texts texts = files_by_size({State::alone, 0, -1}, false);
    texts["ultraserver_mode"] = "\n";  // not even alone
    return texts;
  }
  if (driver.platform_class_files && is_partition) {
    return files_of_partition(plan.value_or(UltraServerPlan{State::alone, 0, -1}));
  }
  // Before 2.30.2 a parameter of the driver is the size of a partition, by default 2.
  return files_by_size(plan.value_or(UltraServerPlan{State::linked, is_partition ? 2 : 4, 0}), is_partition);
}

void write_neuron(TreeWriter& tree, const MachinePlan& machine) {
  if (!machine.has_driver()) return;
  tree.directory("sys/class/neuron_device");
  write_class_files(tree, machine);
  for (const auto& neuron : machine.neurons) write_device(tree, machine, neuron);
}

}  // namespace neuron::sim
