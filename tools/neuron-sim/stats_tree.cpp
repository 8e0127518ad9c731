#include <array>
#include <string>

#include "tools/neuron-sim/trees.h"

// info/, stats/ and neuron_core<M>/ of one device (docs/reference/driver.md#device-counters).
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

// Before the first minute of the wall clock has passed: nothing is measured yet, whatever the status says.
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

}  // namespace neuron::sim
