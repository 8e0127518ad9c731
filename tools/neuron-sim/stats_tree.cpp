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

void counter(TreeWriter& tree, const std::string& folder) {
  tree.file(folder + "/total", "0\n", kClearable);
  tree.file(folder + "/present", "0\n", kClearable);
}

void memory(TreeWriter& tree, const std::string& folder) {
  counter(tree, folder);
  tree.file(folder + "/peak", "0\n", kClearable);
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
  for (const char* name : {"sram_ecc_uncorrected", "mem_ecc_uncorrected", "mem_ecc_repairable_uncorrected"}) {
    tree.file(folder + "/" + name, "0\n", 0644);
  }
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

void write_power(TreeWriter& tree, const MachinePlan& machine, const std::string& folder) {
  tree.file(folder + "/utilization", "POWER_STATUS_VALID,1789180860,0.00,0.00,0.00\n", 0644);
  if (!machine.driver.raw_power) return;
  const bool two_dies = has_health_files(*machine.type->family);
  tree.file(folder + "/utilization_raw", std::string("die,util_bips,counter\n0,0,1\n") + (two_dies ? "1,0,1\n" : ""),
            0644);
}

void write_core(TreeWriter& tree, const MachinePlan& machine, const std::string& base) {
  tree.file(base + "/info/architecture/arch_type", line(texts_of(*machine.type->family).core_arch), 0644);
  for (const auto name : status_names()) counter(tree, base + "/stats/status/" + std::string(name));
  for (const auto name : other_info_names()) counter(tree, base + "/stats/other_info/" + std::string(name));
  const std::string usage = base + "/stats/memory_usage/";
  memory(tree, usage + "host_mem");
  memory(tree, usage + "device_mem");
  for (const auto kind : kDeviceKinds) memory(tree, usage + "device_mem/" + std::string(kind));
  const int rows = has_health_files(*machine.type->family) ? 4 : 1;
  std::string counters = "xrow_grp,mm_active,wl_active,idle\n";
  for (int row = 0; row < rows; ++row) counters += std::to_string(row) + ",0,0,0\n";
  tree.file(base + "/stats/tensor_engine/pe_cntrs", counters);
}

}  // namespace

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
  for (const auto kind : kHostKinds) memory(tree, base + "/stats/memory_usage/host_mem/" + std::string(kind));
  write_power(tree, machine, base + "/stats/power");
  for (int core = 0; core < machine.type->physical_cores_per_device; ++core) {
    write_core(tree, machine, base + "/neuron_core" + std::to_string(core));
  }
}

}  // namespace neuron::sim
