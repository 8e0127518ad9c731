#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "agent/base/near_match.h"
#include "agent/base/parse.h"
#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/trees.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;

std::vector<FaultKey> keys_of_files() {
  using enum TargetKind;
  const std::string parameters = "sys/module/neuron/parameters/";
  const std::string hardware = "stats/hardware/";
  const std::string health = hardware + "health_status/";
  const std::string unmeasured = "module parameter; 0: health is not measured";
  return {
      {host, "instance_type", "sys/devices/virtual/dmi/id/product_name", "DMI product name"},
      {host, "instance_id", "sys/devices/virtual/dmi/id/board_asset_tag", "DMI asset tag"},
      {host, "driver_version", "sys/module/neuron/version", "version text of the Neuron module only"},
      {host, "efa_driver_version", "sys/module/efa/version", "version text of the EFA module only"},
      {host, "lnc", "opt/aws/neuron/logical_nc_config", "physical cores per logical core, 1 or 2",
       "NEURON_LOGICAL_NC_CONFIG={}\n", true},
      {host, "kernel_log", "", "an extra kernel log line, verbatim", "", true},
      {host, "nmetric_log_posts", parameters + "nmetric_log_posts", unmeasured, "{}\n", true},
      {host, "enable_sysfs_health_status_nodes", parameters + "enable_sysfs_health_status_nodes", unmeasured, "{}\n",
       true},
      {host, "ultraserver_mode", "sys/class/neuron_device/ultraserver_mode", "UltraServer modes, e.g. 1,3,4"},
      {host, "ultraserver", "", "UltraServer: busy, alone, 2, 4, 4:3"},
      {device, "sram_ecc_uncorrected", hardware + "sram_ecc_uncorrected", "uncorrected SRAM errors: fatal"},
      {device, "mem_ecc_uncorrected", hardware + "mem_ecc_uncorrected", "uncorrected HBM errors: fatal"},
      {device, "mem_ecc_repairable_uncorrected", hardware + "mem_ecc_repairable_uncorrected",
       "repairable HBM errors: reload or reboot"},
      {device, "sram_ecc_corrected", hardware + "sram_ecc_corrected", "corrected SRAM errors, from 2.30.2"},
      {device, "mem_ecc_corrected", hardware + "mem_ecc_corrected", "corrected HBM errors, from 2.30.2"},
      {device, "unhealthy_components", health + "unhealthy_components", "hbm,link_efa... or device_unreachable"},
      {device, "healthcheck_heartbeat", health + "healthcheck_heartbeat", "0-255 (2.30.2 on); stuck while others move"},
      {device, "hw_error_event", health + "hw_error_event", "changes of the health register, from 2.28"},
      {device, "hbm_ecc_err_count", health + "hbm_ecc_err_count", "HBM errors, 2.28 and 2.29"},
      {device, "repairable_hbm_ecc_err_count", health + "repairable_hbm_ecc_err_count",
       "repairable HBM errors, 2.28 and 2.29"},
      {device, "sram_ecc_err_count", health + "sram_ecc_err_count", "SRAM errors, 2.28 and 2.29"},
      {device, "reset", "reset", "0 in reset, 1 ready, 2 invalid"},
      {device, "connected_devices", "connected_devices", "neighbours, e.g. \"12, 3, 4, 1\""},
      {device, "serial_number", "info/serial_number", "16 hexadecimal digits"},
      {device, "device_name", "info/architecture/device_name", "device family, e.g. Trainium1"},
      {device, "power", "stats/power/utilization", "STATUS,EPOCH,MIN,MAX,AVG"},
      {device, "core_count", "core_count", "physical cores", "{}"},
      {device, "hbm", "", "U[,R[,STATE]]: uncorrectable, repairable", "", true},
      {device, "hw_err", "", "NEURON_HW_ERR= in kernel log, e.g. DMA_ERROR", "", true},
      {device, "apps", "", "PID[:CORE_MASK[:HOST_BYTES[:DEV_BYTES]]],..."},
      {core, "device_mem", "stats/memory_usage/device_mem/total", "bytes of device memory in use now"},
      {core, "host_mem", "stats/memory_usage/host_mem/total", "bytes of host memory in use now"},
      {core, "hw_err", "", "of a core, e.g. NC_UNCORRECTABLE_ERROR", "", true},
  };
}

std::vector<FaultKey> all_keys() {
  using enum TargetKind;
  std::vector<FaultKey> keys = keys_of_files();
  const auto add = [&](TargetKind kind, std::string_view name, const std::string& folder, const char* meaning,
                       const char* end = "") {
    keys.push_back({kind, std::string(name), folder + std::string(name) + end, meaning});
  };
  for (const auto name : split(kOtherInfoNames, ' '))
    add(core, name, "stats/other_info/", "counter since driver load", "/total");
  for (const auto name : split(kStatusNames, ' ')) {
    const bool hardware = name.starts_with("hw_");
    add(core, name, "stats/status/", hardware ? "hardware errors met by executions" : "executions that ended so",
        "/total");
  }
  add(efa, "p2p", "", "peer-memory provider: NEURON, NVIDIA or \"\"");
  add(efa, "numa_node", "", "NUMA node, -1 = none");
  for (const auto name : split(kEfaPortCounters, ' ')) add(efa, name, "@/ports/1/hw_counters/", "port counter");
  for (const auto name : split(kEfaDeviceCounters, ' ')) add(efa, name, "@/hw_counters/", "device counter");
  return keys;
}

constexpr const char* kNeuronFolder = "sys/devices/virtual/neuron_device/";
constexpr int kMaxIndex = 9999;

// `path` with all links resolved, relative to `dir`; nullopt when absent or outside.
std::optional<std::string> resolve(const std::string& dir, const std::string& path) {
  std::error_code error;
  const auto root = fs::canonical(dir, error);
  if (error) return std::nullopt;
  const auto real = fs::canonical(root / path, error);
  if (error) return std::nullopt;
  if (real == root) return "";
  const std::string text = real.string();
  const std::string prefix = root == "/" ? "/" : root.string() + "/";
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

std::optional<int> number_after(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return std::nullopt;
  const auto digits = text.substr(word.size());
  const auto number = parse_int(digits, 0, kMaxIndex);
  return number && std::to_string(*number) == digits ? number : std::nullopt;
}

Result<FaultTarget> neuron_target(const std::string& dir, const std::string& name, int index, std::optional<int> core) {
  const std::string device = "neuron" + std::to_string(index);
  FaultTarget target;
  target.kind = core ? TargetKind::core : TargetKind::device;
  target.name = name;
  target.folder = kNeuronFolder + device;
  if (!fs::is_directory(fs::path(dir) / target.folder)) {
    return fail(ErrorCode::not_found, device + " does not exist (never did, or has vanished: heal restores it)");
  }
  if (core) {
    target.folder += "/neuron_core" + std::to_string(*core);
    if (!fs::is_directory(fs::path(dir) / target.folder)) {
      return fail(ErrorCode::not_found, device + " has no folder neuron_core" + std::to_string(*core));
    }
    return target;
  }
  target.nodes = {"dev/" + device};
  target.links = {"sys/class/neuron_device/" + device};
  target.answers = "neuron-ioctl/" + device + ".json";
  return target;
}

Result<FaultTarget> efa_target(const std::string& dir, const std::string& name) {
  const auto names = names_in(dir + "/sys/class/infiniband");
  if (!std::ranges::binary_search(names, name)) {
    std::string known = "host, neuron<N>, neuron<N>/core<M>";
    for (const auto& other : names) known += ", " + other;
    return fail(ErrorCode::not_found, "no target \"" + printable(name) + "\"; available: " + known);
  }
  FaultTarget target;
  target.kind = TargetKind::efa;
  target.name = name;
  const auto rdma_folder = resolve(dir, "sys/class/infiniband/" + name);
  const auto folder = resolve(dir, "sys/class/infiniband/" + name + "/device");
  if (!rdma_folder || !folder) return fail(ErrorCode::data_corrupt, name + ": broken links in sys/class/infiniband");
  target.rdma_folder = *rdma_folder;
  target.folder = *folder;
  target.links = {"sys/class/infiniband/" + name};
  for (const auto& verbs : names_in(dir + "/" + target.folder + "/infiniband_verbs")) {
    target.links.push_back("sys/class/infiniband_verbs/" + verbs);
    target.nodes.push_back("dev/infiniband/" + verbs);
  }
  const std::string bdf = fs::path(target.folder).filename().string();
  std::error_code error;
  const auto driver = fs::read_symlink(fs::path(dir) / target.folder / "driver", error).filename().string();
  target.driver_link = "sys/bus/pci/drivers/" + driver + "/" + bdf;
  target.bus_link = "sys/bus/pci/devices/" + bdf;
  return target;
}

}  // namespace

const std::vector<FaultKey>& fault_keys() {
  static const std::vector<FaultKey> kKeys = all_keys();
  return kKeys;
}

const FaultKey* find_fault_key(TargetKind kind, std::string_view name) {
  if (name == "heartbeat") name = "healthcheck_heartbeat";
  if (name == "rx_dropped") name = "rx_drops";
  const auto& keys = fault_keys();
  const auto found = std::ranges::find_if(keys, [&](const auto& key) { return key.kind == kind && key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

Result<FaultTarget> find_target(const std::string& dir, const std::string& name) {
  if (name == "host") return FaultTarget{TargetKind::host, name, "", "", {}, {}, "", "", ""};
  const auto parts = split(name, '/');
  const auto device = parts.empty() ? std::nullopt : number_after(parts[0], "neuron");
  if (device && parts.size() == 1) return neuron_target(dir, name, *device, std::nullopt);
  if (device && parts.size() == 2) {
    if (const auto core = number_after(parts[1], "core")) return neuron_target(dir, name, *device, core);
  }
  if (parts.size() != 1 || name == "." || name == "..") {
    return fail(ErrorCode::invalid_argument,
                "target \"" + printable(name) + "\" is not host, neuron<N>, neuron<N>/core<M> or an RDMA name");
  }
  return efa_target(dir, name);
}

Result<std::string> path_of_key(const std::string& dir, const FaultTarget& target, const std::string& key) {
  std::string path;
  if (const auto* known = find_fault_key(target.kind, key); known != nullptr && known->name == "apps") {
    path = target.answers;
  } else if (known != nullptr) {
    const std::string& folder = known->path.starts_with("@/") ? target.rdma_folder : target.folder;
    path = (folder.empty() ? "" : folder + "/") + (known->path.starts_with("@/") ? known->path.substr(2) : known->path);
    if (known->may_create) return path;
  } else if (!stays_below(key)) {
    return fail(ErrorCode::invalid_argument, "key \"" + printable(key) + "\" leads out of " + target.name);
  } else {
    path = (target.folder.empty() ? "" : target.folder + "/") + key;
  }
  const auto parent = resolve(dir, fs::path(path).parent_path().string());
  const auto leaf = fs::path(path).filename().string();
  const bool plain_leaf = !leaf.empty() && leaf != "." && leaf != "..";
  if (parent && plain_leaf && is_there(dir + "/" + *parent + "/" + leaf) && !parent->starts_with(kOwnFolder)) {
    return parent->empty() ? leaf : *parent + "/" + leaf;
  }
  if (find_fault_key(target.kind, key) != nullptr) {
    return fail(ErrorCode::not_found,
                target.name + " has no " + path + " (not part of this driver version, or removed)");
  }
  std::vector<std::string> names;
  for (const auto& other : fault_keys()) {
    if (other.kind == target.kind) names.push_back(other.name);
  }
  return fail(ErrorCode::invalid_argument, "unknown key \"" + printable(key) + "\" for " + target.name +
                                               did_you_mean(key, names) + " (neuron-sim set --list shows all)");
}

}  // namespace neuron::sim
