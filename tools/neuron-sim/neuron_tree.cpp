#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "agent/base/parse.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

using model::Family;
using std::to_string;

constexpr mode_t kClearable = 0644;  // total, present and peak clear on write, hence their mode

struct FamilyTexts {
  std::string_view device_arch, core_arch, instance_type, device_name;
};

// In the order of Family.
constexpr FamilyTexts kFamilyTexts[] = {{"NDv1", "NCv1", "Inf1", "Inferentia"},
                                        {"NDv3", "NCv2", "Inf2", "Inferentia2"},
                                        {"NDv2", "NCv2", "Trn1", "Trainium1"},
                                        {"NDv3", "NCv3", "Trn2", "Trainium2"},
                                        {"NDv4", "NCv4", "Trn3", "Trainium3"}};

const FamilyTexts& texts_of(const MachinePlan& machine) {
  return kFamilyTexts[static_cast<std::size_t>(*machine.type->family)];
}

constexpr std::string_view kHostKinds =
    "dma_buffers tensors constants application_memory driver_memory notifications dma_rings uncategorized";
constexpr std::string_view kDeviceKinds =
    "model_code tensors constants model_shared_scratchpad runtime_memory driver_memory collectives "
    "nonshared_scratchpad notifications dma_rings uncategorized";

void counter(TreeWriter& tree, const std::string& folder, std::uint64_t total = 0, std::uint64_t present = 0) {
  tree.lines(folder, {{"/total", to_string(total), kClearable}, {"/present", to_string(present), kClearable}});
}

void memory(TreeWriter& tree, const std::string& folder, std::uint64_t total = 0) {
  constexpr std::uint64_t kLastAllocation = 4096;
  counter(tree, folder, total, total > 0 ? kLastAllocation : 0);
  tree.line(folder + "/peak", to_string(total), kClearable);
}

// info/ and stats/ of a device, without its memory (docs/reference/driver.md#device-counters). Power before the first
// minute of the wall clock has passed: nothing is measured yet, whatever the status.
void write_device_stats(TreeWriter& tree, const MachinePlan& machine, const NeuronFunction& neuron,
                        const std::string& base) {
  const DriverGeneration& driver = machine.driver;
  const FamilyTexts& texts = texts_of(machine);
  const Family family = *machine.type->family;
  const bool has_ecc = family != Family::inferentia;
  const bool is_new = family == Family::trainium2 || family == Family::trainium3;
  const HealthFiles health = is_new ? driver.health() : HealthFiles::none;
  const bool counts = health == HealthFiles::error_counts;
  const bool components = health == HealthFiles::components;
  const std::string status = driver.valid_without_power() ? "POWER_STATUS_VALID" : "POWER_STATUS_NO_DATA";
  const std::string_view two_dies = is_new ? "\n1,unavailable" : "";
  tree.lines(base, {{"/info/notify_delay", "-1", 0644},
                    {"/info/serial_number", neuron.serial, 0644, has_ecc},
                    {"/info/architecture/arch_type", texts.device_arch, 0644},
                    {"/info/architecture/instance_type", texts.instance_type, 0644},
                    {"/info/architecture/device_name", texts.device_name, 0644},
                    {"/stats/power/utilization", status + ",0,0.00,0.00,0.00", 0644},
                    {"/stats/power/utilization_raw", fmt::format("die,util_bips,counter\n0,unavailable{}", two_dies),
                     0644, driver.raw_power()}});
  tree.lines(base + "/stats/hardware/",
             {{"sram_ecc_uncorrected", "0", 0644, has_ecc},
              {"mem_ecc_uncorrected", "0", 0644, has_ecc},
              {"mem_ecc_repairable_uncorrected", "0", 0644, has_ecc && driver.repairable_ecc()},
              {"sram_ecc_corrected", "0", 0644, has_ecc && driver.corrected_ecc()},
              {"mem_ecc_corrected", "0", 0644, has_ecc && driver.corrected_ecc()},
              {"health_status/hbm_ecc_err_count", "0", 0444, counts},
              {"health_status/repairable_hbm_ecc_err_count", "0", 0444, counts},
              {"health_status/sram_ecc_err_count", "0", 0444, counts},
              {"health_status/unhealthy_components", "", 0444, components},
              {"health_status/healthcheck_heartbeat", "17", 0444, components},
              {"health_status/hw_error_event", "0", 0444, counts || components}});
}

void write_core(TreeWriter& tree, const MachinePlan& machine, const std::string& base, int core) {
  tree.line(base + "/info/architecture/arch_type", texts_of(machine).core_arch, 0644);
  for (const auto name : split(kStatusNames, ' ')) {
    if (name == "hw_repairable_hbm_ue_error" && !machine.driver.repairable_ecc()) continue;
    counter(tree, base + "/stats/status/" + std::string(name));
  }
  for (const auto name : split(kOtherInfoNames, ' ')) {
    const std::uint64_t count = name == "reset_req_count" ? 1 : 0;  // the reset at the start
    counter(tree, base + "/stats/other_info/" + std::string(name), count, count);
  }
  const std::string usage = base + "/stats/memory_usage/";
  memory(tree, usage + "host_mem", own_host_memory(core));
  memory(tree, usage + "device_mem");
  for (const auto kind : split(kDeviceKinds, ' ')) memory(tree, usage + "device_mem/" + std::string(kind));
  if (machine.type->family == Family::inferentia || !machine.driver.tensor_counters()) return;
  tree.line(base + "/stats/tensor_engine/pe_cntrs",
            "xrow_grp,mm_active,wl_active,idle\n0,0,0,0\n1,0,0,0\n2,0,0,0\n3,0,0,0", 0644);
}

using State = UltraServerPlan::State;
using Texts = std::map<std::string, std::string>;

constexpr std::uint64_t kServerId = 0x8f10b6e35a7c92d4;
constexpr std::uint64_t kPartitionId = 1;  // driver 2.26: the default of its parameter userver_pds_server_id

std::string server_id(std::uint64_t id) {
  return fmt::format("{:016x}", id);
}

// Four nodes can work by two as well, over their vertical links (3). Two servers of an UltraServer find each other over
// the horizontal links (2), two of a partition over the vertical ones.
std::string modes_of(const UltraServerPlan& plan, bool is_partition) {
  if (plan.state == State::busy) return "busy";
  if (plan.state == State::alone) return "4";
  if (plan.nodes == 4) return "1,3,4";
  return is_partition ? "3,4" : "2,4";
}

// The driver counts a pair of the four from 0, and gives the second pair another id.
Texts files_by_size(const UltraServerPlan& plan, bool is_partition) {
  const bool busy = plan.state == State::busy;
  const std::string no_node = busy ? "busy" : "-1";
  Texts texts{{"node_id_2", no_node},
              {"node_id_4", no_node},
              {"server_id_2", server_id(0)},
              {"server_id_4", server_id(0)},
              {"ultraserver_mode", modes_of(plan, is_partition)}};
  if (plan.state != State::linked) return texts;
  const std::uint64_t id = is_partition ? kPartitionId : kServerId;
  const bool is_second_pair = plan.node >= 2;
  texts["node_id_2"] = to_string(plan.node % 2);
  texts["server_id_2"] = server_id(is_second_pair ? id - 1 : id);
  if (plan.nodes != 4) return texts;
  texts["node_id_4"] = to_string(plan.node);
  texts["server_id_4"] = server_id(id);
  return texts;
}

Texts files_of_partition(const UltraServerPlan& plan) {
  const bool busy = plan.state == State::busy;
  const bool linked = plan.state == State::linked;
  return {{"node_id", busy ? "busy" : to_string(linked ? plan.node : -1)},
          {"node_cnt", busy ? "busy" : to_string(linked ? plan.nodes : 0)},
          {"reservation_id", linked ? server_id(kServerId) : server_id(0)},
          {"ultraserver_mode", modes_of(plan, true)}};
}

constexpr const char* kClass = "sys/class/neuron_device/";

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
  return fmt::format("{{ \"bdf\": \"{}\",\n  \"apps\": [],\n  \"logical_to_physical\": [{}] }}\n",
                     model::to_string(neuron.pci.bdf), fmt::join(core_order(machine, neuron.index), ", "));
}

// A driver of unknown layout: the folders are made up, so that a reader must notice.
void write_moved(TreeWriter& tree, const std::string& base, const std::string& neighbours, const std::string& serial,
                 int cores) {
  tree.lines(base, {{"/device/topology/cores", to_string(cores)},
                    {"/device/topology/links", neighbours},
                    {"/device/identity/serial", serial},
                    {"/telemetry/ecc/sram/uncorrected", "0"},
                    {"/telemetry/ecc/hbm/uncorrected", "0"},
                    {"/telemetry/health/components", ""}});
  for (int core = 0; core < cores; ++core) tree.line(fmt::format("{}/cores/{}/telemetry/busy_us", base, core), "0");
}

// The files of a driver of known layout.
void write_known(TreeWriter& tree, const MachinePlan& machine, const NeuronFunction& neuron, const std::string& base,
                 const std::string& neighbours) {
  const DriverGeneration& driver = machine.driver;
  const mode_t mode = driver.readable_counts() ? 0444 : 0400;
  const int cores = machine.type->physical_cores_per_device;
  tree.file(base + "/core_count", to_string(cores), mode);  // no newline
  tree.lines(base, {{"/connected_devices", neighbours, mode},
                    {"/reset", "1", 0600},
                    {"/fw_api_version", "7", 0444, driver.firmware_files()},
                    {"/fw_build", "5121", 0444, driver.firmware_files()}});
  write_device_stats(tree, machine, neuron, base);
  std::uint64_t own = 0;
  for (int core = 0; core < cores; ++core) {
    own += own_host_memory(core);
    write_core(tree, machine, base + "/neuron_core" + to_string(core), core);
  }
  for (const auto kind : split(kHostKinds, ' ')) {
    memory(tree, base + "/stats/memory_usage/host_mem/" + std::string(kind), kind == "driver_memory" ? own : 0);
  }
}

void write_device(TreeWriter& tree, const MachinePlan& machine, const NeuronFunction& neuron) {
  const std::string name = "neuron" + to_string(neuron.index);
  const std::string base = "sys/devices/virtual/neuron_device/" + name;
  const std::string neighbours = fmt::format("{}", fmt::join(neuron.neighbours, ", "));
  tree.lines(base, {{"/dev", fmt::format("239:{}", neuron.index)},
                    {"/uevent", fmt::format("MAJOR=239\nMINOR={}\nDEVNAME={}", neuron.index, name), 0644},
                    {"/power/control", "auto", 0644},
                    {"/power/runtime_status", "unsupported"}});
  tree.link(base + "/subsystem", "sys/class/neuron_device");
  tree.link(kClass + name, base);
  if (machine.driver.known_layout()) {
    write_known(tree, machine, neuron, base, neighbours);
  } else {
    write_moved(tree, base, neighbours, neuron.serial, machine.type->physical_cores_per_device);
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

Texts ultraserver_files(Platform platform, const DriverGeneration& driver, const std::optional<UltraServerPlan>& plan) {
  const bool is_partition = platform == Platform::pds || platform == Platform::max;
  if (!driver.class_files_by_size()) {  // 2.22.2 shows its own number alone, 2.21.37 nothing
    if (driver.minor < 22) return {};
    const bool linked = platform == Platform::ultraserver && (!plan || plan->state == State::linked);
    const bool busy = plan && plan->state == State::busy;
    return {{"node_id", busy     ? "busy"
                        : linked ? to_string(plan ? plan->node : 0)
                                 : "-1"},
            {"server_id", linked ? server_id(kServerId) : server_id(0)}};
  }
  if (platform == Platform::standard) {
    if (driver.platform_class_files()) return {};
    Texts texts = files_by_size({State::alone, 0, -1}, false);
    texts["ultraserver_mode"] = "";  // not even alone
    return texts;
  }
  if (driver.platform_class_files() && is_partition) {
    return files_of_partition(plan.value_or(UltraServerPlan{State::alone, 0, -1}));
  }
  // Before 2.30.2 a parameter of the driver is the size of a partition, by default 2.
  return files_by_size(plan.value_or(UltraServerPlan{State::linked, is_partition ? 2 : 4, 0}), is_partition);
}

void write_neuron(TreeWriter& tree, const MachinePlan& machine) {
  if (!machine.has_driver()) return;
  tree.directory("sys/class/neuron_device");
  for (const auto& [name, text] : ultraserver_files(machine.platform, machine.driver, machine.options.ultraserver)) {
    tree.line(kClass + name, text);
  }
  const bool by_platform = machine.driver.platform_class_files();
  tree.lines(kClass, {{"hbm_7200_capable", "0", 0444, by_platform}, {"current_perf_profile", "0", 0444, by_platform}});
  for (const auto& neuron : machine.neurons) write_device(tree, machine, neuron);
}

}  // namespace neuron::sim
