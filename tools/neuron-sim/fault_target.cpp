#include "tools/neuron-sim/fault_target.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "agent/base/parse.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/near_match.h"

namespace neuron::sim {
namespace {

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
  std::string message = "unknown key \"" + printable(key) + "\" for " + target.name;
  const auto near = near_matches(key, names);
  for (std::size_t i = 0; i < near.size(); ++i) message += (i == 0 ? "; did you mean " : ", ") + near[i];
  return fail(ErrorCode::invalid_argument, message + (near.empty() ? "" : "?") + " (neuron-sim set --list shows all)");
}

}  // namespace neuron::sim
