#include "tools/neuron-sim/fault_keys.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

void add_host_keys(std::vector<FaultKey>& keys) {
  const auto add = [&](std::string name, std::string path, std::string meaning) {
    keys.push_back({std::move(name), TargetKind::host, std::move(path), std::move(meaning), "", "\n", false});
  };
  add("instance_type", "sys/devices/virtual/dmi/id/product_name", "DMI product name");
  add("instance_id", "sys/devices/virtual/dmi/id/board_asset_tag", "DMI asset tag");
  add("driver_version", "sys/module/neuron/version", "version text of the Neuron module only");
  add("efa_driver_version", "sys/module/efa/version", "version text of the EFA module only");
  keys.push_back({"lnc", TargetKind::host, "opt/aws/neuron/logical_nc_config",
                  "physical cores per logical core, 1 or 2", "NEURON_LOGICAL_NC_CONFIG=", "\n", true});
  keys.push_back({"kernel_log", TargetKind::host, "", "an additional line of the kernel log, verbatim", "", "", true});
  for (const char* name : {"nmetric_log_posts", "enable_sysfs_health_status_nodes"}) {
    keys.push_back({name, TargetKind::host, std::string("sys/module/neuron/parameters/") + name,
                    "module parameter; 0: health is not measured", "", "\n", true});
  }
  add("ultraserver_mode", "sys/class/neuron_device/ultraserver_mode", "UltraServer modes, e.g. 1,3,4");
  keys.push_back({"ultraserver", TargetKind::host, "", "UltraServer: busy, alone, 2, 4, 4:3", "", "", false});
}

void add_device_keys(std::vector<FaultKey>& keys) {
  const auto add = [&](std::string name, std::string path, std::string meaning) {
    keys.push_back({std::move(name), TargetKind::device, std::move(path), std::move(meaning), "", "\n", false});
  };
  const std::string hardware = "stats/hardware/";
  const std::string health = hardware + "health_status/";
  add("sram_ecc_uncorrected", hardware + "sram_ecc_uncorrected", "uncorrected SRAM errors: fatal");
  add("mem_ecc_uncorrected", hardware + "mem_ecc_uncorrected", "uncorrected HBM errors: fatal");
  add("mem_ecc_repairable_uncorrected", hardware + "mem_ecc_repairable_uncorrected",
      "repairable HBM errors: reload or reboot");
  add("sram_ecc_corrected", hardware + "sram_ecc_corrected", "corrected SRAM errors, from 2.30.2");
  add("mem_ecc_corrected", hardware + "mem_ecc_corrected", "corrected HBM errors, from 2.30.2");
  add("unhealthy_components", health + "unhealthy_components", "hbm,link_efa... or device_unreachable");
  add("healthcheck_heartbeat", health + "healthcheck_heartbeat", "0-255, from 2.30.2; stuck while others advance");
  add("hw_error_event", health + "hw_error_event", "changes of the health register, from 2.28");
  add("hbm_ecc_err_count", health + "hbm_ecc_err_count", "HBM errors, 2.28 and 2.29");
  add("repairable_hbm_ecc_err_count", health + "repairable_hbm_ecc_err_count", "repairable HBM errors, 2.28 and 2.29");
  add("sram_ecc_err_count", health + "sram_ecc_err_count", "SRAM errors, 2.28 and 2.29");
  add("reset", "reset", "0 in reset, 1 ready, 2 invalid");
  add("connected_devices", "connected_devices", "neighbours, e.g. \"12, 3, 4, 1\"");
  add("serial_number", "info/serial_number", "16 hexadecimal digits");
  add("device_name", "info/architecture/device_name", "chip family, e.g. Trainium1");
  add("power", "stats/power/utilization", "STATUS,EPOCH,MIN,MAX,AVG");
  keys.push_back({"core_count", TargetKind::device, "core_count", "physical cores", "", "", false});
  keys.push_back({"hbm", TargetKind::device, "", "U[,R[,STATE]]: uncorrectable, repairable", "", "", true});
  keys.push_back({"hw_err", TargetKind::device, "", "NEURON_HW_ERR= in kernel log, e.g. DMA_ERROR", "", "", true});
  keys.push_back({"apps", TargetKind::device, "", "PID[:CORE_MASK[:HOST_BYTES[:DEV_BYTES]]],...", "", "", false});
}

void add_core_keys(std::vector<FaultKey>& keys) {
  const auto add = [&](std::string name, std::string path, std::string meaning) {
    keys.push_back({std::move(name), TargetKind::core, std::move(path), std::move(meaning), "", "\n", false});
  };
  add("device_mem", "stats/memory_usage/device_mem/total", "bytes of device memory in use now");
  add("host_mem", "stats/memory_usage/host_mem/total", "bytes of host memory in use now");
  keys.push_back({"hw_err", TargetKind::core, "", "of a core, e.g. NC_UNCORRECTABLE_ERROR", "", "", true});
  for (const auto name : other_info_names()) {
    add(std::string(name), "stats/other_info/" + std::string(name) + "/total", "counter since driver load");
  }
  for (const auto name : status_names()) {
    const bool hardware = name.starts_with("hw_");
    add(std::string(name), "stats/status/" + std::string(name) + "/total",
        hardware ? "hardware errors met by executions" : "executions that ended so");
  }
}

void add_efa_keys(std::vector<FaultKey>& keys) {
  const auto add = [&](std::string name, std::string path, std::string meaning) {
    keys.push_back({std::move(name), TargetKind::efa, std::move(path), std::move(meaning), "", "\n", false});
  };
  add("p2p", "p2p", "peer-memory provider: NEURON, NVIDIA or \"\"");
  add("numa_node", "numa_node", "NUMA node, -1 = none");
  for (const auto name : efa_port_counters()) {
    add(std::string(name), "@/ports/1/hw_counters/" + std::string(name), "port counter");
  }
  for (const auto name : efa_device_counters()) {
    add(std::string(name), "@/hw_counters/" + std::string(name), "device counter");
  }
}

constexpr std::array<std::pair<TargetKind, std::string_view>, 4> kHeadings = {{
    {TargetKind::host, "host"},
    {TargetKind::device, "neuron<N>"},
    {TargetKind::core, "neuron<N>/core<M>   (M = physical core)"},
    {TargetKind::efa, "an EFA interface by its RDMA name, e.g. rdmap16s25"},
}};

constexpr std::string_view kVerbs =
    "Verbs, for every target unless noted otherwise\n"
    "  heal              undo everything done to the target; host: to all targets\n"
    "  vanish            neuron<N>, EFA: removed from the class directory and dev/\n"
    "  off-bus           neuron<N>: present, but its registers read all ones\n"
    "  unbind            EFA: the function stays, its driver is unbound\n"
    "  drop-node         neuron<N>, EFA: only the node in dev/ is removed\n"
    "  remove KEY        the file is removed\n"
    "  empty KEY         the file has no bytes\n"
    "  garbage KEY       the file holds bytes that are not text\n"
    "  huge KEY          the file holds a megabyte of digits\n"
    "  fifo KEY          replaced by a FIFO without a writer\n"
    "  unreadable KEY    replaced by a directory, so that reading fails\n"
    "KEY may also be a path below the target's folder (host: below the directory).\n"
    "VALUE is written verbatim, with a newline; \"\" gives an empty line.\n";

}  // namespace

const std::vector<FaultKey>& fault_keys() {
  static const std::vector<FaultKey> kKeys = [] {
    std::vector<FaultKey> keys;
    add_host_keys(keys);
    add_device_keys(keys);
    add_core_keys(keys);
    add_efa_keys(keys);
    return keys;
  }();
  return kKeys;
}

const FaultKey* find_fault_key(TargetKind kind, std::string_view name) {
  if (name == "heartbeat") name = "healthcheck_heartbeat";
  if (name == "rx_dropped") name = "rx_drops";
  const auto& keys = fault_keys();
  const auto found =
      std::find_if(keys.begin(), keys.end(), [&](const auto& key) { return key.kind == kind && key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

std::string list_faults() {
  constexpr std::size_t kNameWidth = 34;
  std::string text;
  for (const auto& [kind, heading] : kHeadings) {
    text += "KEY=VALUE for " + std::string(heading) + "\n";
    for (const auto& key : fault_keys()) {
      if (key.kind != kind) continue;
      text += "  " + key.name + std::string(kNameWidth - std::min(key.name.size(), kNameWidth - 1), ' ') + key.meaning +
              "\n";
    }
    text += "\n";
  }
  return text.append(kVerbs);
}

}  // namespace neuron::sim
