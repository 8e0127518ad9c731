#include "tools/neuron-sim/fault_target.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "agent/base/parse.h"
#include "tools/neuron-sim/host_directory.h"
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
  keys.push_back({"kernel_log", TargetKind::host, "", "an extra kernel log line, verbatim", "", "", true});
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
  add("healthcheck_heartbeat", health + "healthcheck_heartbeat", "0-255 (2.30.2 on); stuck while others move");
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

namespace fs = std::filesystem;

constexpr const char* kNeuronFolder = "sys/devices/virtual/neuron_device/";
constexpr int kMaxIndex = 9999;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

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
  const auto names = names_in(fs::path(dir) / "sys/class/infiniband");
  if (!std::binary_search(names.begin(), names.end(), name)) {
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
  for (const auto& verbs : names_in(fs::path(dir) / target.folder / "infiniband_verbs")) {
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
  std::error_code error;
  const bool plain_leaf = !leaf.empty() && leaf != "." && leaf != "..";
  if (parent && plain_leaf && fs::exists(fs::symlink_status(fs::path(dir) / *parent / leaf, error)) &&
      !parent->starts_with(".neuron-sim")) {
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
