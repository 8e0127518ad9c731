// The kubelet's directory and configuration, and what claims (dynamic resource allocation) need of a node.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "agent/base/parse.h"
#include "agent/host/preflight_facts.h"

namespace neuron::host {
namespace {

using nlohmann::json;
using preflight::ClaimFacts;
using preflight::PathState;

constexpr std::size_t kMaxRecordBytes = std::size_t{16} << 20U;  // as the driver's own
constexpr std::size_t kMaxConfigBytes = std::size_t{256} << 10U;
constexpr std::size_t kMaxPackageBytes = std::size_t{8} << 20U;
constexpr std::size_t kMaxUidBytes = 64;
constexpr std::size_t kMostClaims = 4096;
constexpr std::size_t kMostDropIns = 64;
constexpr std::size_t kMaxSockets = 64;
constexpr std::size_t kMaxShownName = 120;
constexpr std::string_view kCdiFolder = "var/run/cdi";
constexpr std::array kGates = {"DynamicResourceAllocation", "DRAExtendedResource",
                               "KubeletPodResourcesDynamicResources"};

bool is_name_byte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// "k8s.neuron.aws.com-claim_UID.json"
std::vector<std::string> described_claims(const FsRoot& root, std::string_view folder, const std::string& driver) {
  const std::string prefix = "k8s." + driver + "-claim_";
  constexpr std::string_view kSuffix = ".json";
  std::vector<std::string> uids;
  const auto names = root.list(folder);
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (!name.starts_with(prefix) || !name.ends_with(kSuffix) || name.size() < prefix.size() + kSuffix.size()) continue;
    if (uids.size() == kMostClaims) break;
    uids.push_back(printable(name.substr(prefix.size(), name.size() - prefix.size() - kSuffix.size()), kMaxUidBytes));
  }
  std::ranges::sort(uids);
  return uids;
}

bool is_read_only(const std::string& path) {
  return ::access(path.c_str(), W_OK) != 0 && errno == EROFS;
}

void read_cdi_directory(const FsRoot& root, const std::string& named, ClaimFacts& facts) {
  if (named.empty()) {
    facts.cdi_path = kCdiFolder;
    facts.cdi_directory = path_state(root, kCdiFolder);
    facts.cdi_read_only = root.is_live() && is_read_only("/" + facts.cdi_path);
    facts.described = described_claims(root, kCdiFolder, facts.driver);
    return;
  }
  facts.cdi_path = named;
  const auto directory = FsRoot::open(named);
  facts.cdi_directory = state_of(directory);
  if (!directory) return;
  facts.cdi_read_only = is_read_only(named);
  facts.described = described_claims(*directory, ".", facts.driver);
}

void read_record(const FsRoot& kubelet, ClaimFacts& facts) {
  const auto text = kubelet.read_file("plugins/" + facts.driver + "/claims.json", kMaxRecordBytes);
  facts.claims_file = state_of(text);
  if (facts.claims_file == PathState::absent) return;
  auto uids = text.and_then(prepared_claims_in);
  if (!uids) facts.claims_file_problem = uids.error().message;
  if (uids) facts.prepared = *std::move(uids);
}

// Feature gates by the kubelet's configuration, a later file overriding an earlier one.
class Gates {
 public:
  void read(const FsRoot& root, const std::string& path, const std::string& shown) {
    const auto text = root.read_file(path, kMaxConfigBytes);
    if (!text) return;
    any_ = true;
    for (std::size_t i = 0; i < kGates.size(); ++i) {
      if (const auto on = gate_in(*text, kGates[i])) off_[i] = *on ? "" : shown;
    }
  }
  void read_folder(const FsRoot& root, const std::string& folder) {
    const auto names = root.list(folder);
    std::size_t count = 0;
    for (const std::string& name : names.value_or(std::vector<std::string>{})) {
      if (++count > kMostDropIns) break;
      read(root, folder + "/" + name, folder + "/" + printable(name, kMaxShownName));
    }
  }
  [[nodiscard]] bool any() const { return any_; }
  [[nodiscard]] std::vector<preflight::Evidence> off() const {
    std::vector<preflight::Evidence> all;
    for (std::size_t i = 0; i < kGates.size(); ++i) {
      if (!off_[i].empty()) all.push_back({off_[i], kGates[i]});
    }
    return all;
  }

 private:
  bool any_ = false;
  std::array<std::string, kGates.size()> off_;  // the file that disables the gate; "" = none
};

}  // namespace

preflight::KubeletFacts gather_kubelet_facts(const std::string& directory) {
  preflight::KubeletFacts facts;
  facts.directory = directory;
  const auto kubelet = FsRoot::open(directory);
  facts.itself = state_of(kubelet);
  if (!kubelet) return facts;
  facts.device_plugins = path_state(*kubelet, "device-plugins");
  facts.kubelet_socket = path_state(*kubelet, "device-plugins/kubelet.sock");
  facts.pod_resources_socket = path_state(*kubelet, "pod-resources/kubelet.sock");
  const auto entries = kubelet->list("device-plugins");
  for (const std::string& name : entries.value_or(std::vector<std::string>{})) {
    if (!name.ends_with(".sock") || name == "kubelet.sock" || facts.plugin_sockets.size() == kMaxSockets) continue;
    facts.plugin_sockets.push_back(printable(name, kMaxShownName));
  }
  return facts;
}

Result<std::vector<std::string>> prepared_claims_in(std::string_view record) {
  const json document = json::parse(record, nullptr, false);
  if (!document.is_object()) return fail(ErrorCode::data_corrupt, "no JSON object");
  std::vector<std::string> uids;
  const auto claims = document.find("claims");
  if (claims == document.end() || !claims->is_array()) return fail(ErrorCode::data_corrupt, "no list of claims");
  for (const json& claim : *claims) {
    const auto uid = claim.is_object() ? claim.find("uid") : claim.end();
    if (!claim.is_object() || uid == claim.end() || !uid->is_string() || uids.size() == kMostClaims) continue;
    uids.push_back(printable(uid->get_ref<const std::string&>(), kMaxUidBytes));
  }
  std::ranges::sort(uids);
  uids.erase(std::unique(uids.begin(), uids.end()), uids.end());
  return uids;
}

std::optional<bool> gate_in(std::string_view config, std::string_view gate) {
  std::optional<bool> said;
  for (std::string_view line : split(config, '\n')) {
    line = line.substr(0, line.find('#'));
    for (std::size_t at = line.find(gate); at != std::string_view::npos; at = line.find(gate, at + 1)) {
      if (at > 0 && is_name_byte(line[at - 1])) continue;
      std::string_view rest = line.substr(at + gate.size());
      if (rest.starts_with('"') || rest.starts_with('\'')) rest.remove_prefix(1);
      rest = trim(rest);
      if (!rest.starts_with(':')) continue;
      rest = trim(rest.substr(1));
      if (rest.starts_with("true")) said = true;
      if (rest.starts_with("false")) said = false;
    }
  }
  return said;
}

std::string kubelet_version_in(std::string_view dpkg_status) {
  constexpr std::string_view kVersion = "Version: ";
  constexpr std::size_t kMaxVersion = 40;
  bool ours = false;
  for (const std::string_view line : split(dpkg_status, '\n')) {
    if (line.empty()) ours = false;
    if (line == "Package: kubelet") ours = true;
    if (ours && line.starts_with("Status: ") && !line.ends_with(" installed")) ours = false;
    if (ours && line.starts_with(kVersion)) return printable(line.substr(kVersion.size()), kMaxVersion);
  }
  return "";
}

ClaimFacts gather_claim_facts(const FsRoot& root, const std::string& kubelet_directory, const std::string& driver,
                              const std::string& cdi_directory) {
  ClaimFacts facts;
  facts.driver = driver;
  facts.kubelet = kubelet_directory;
  read_cdi_directory(root, cdi_directory, facts);
  Gates gates;
  if (!kubelet_directory.empty()) {
    if (const auto kubelet = FsRoot::open(kubelet_directory)) {
      facts.registry = path_state(*kubelet, "plugins_registry");
      facts.found = path_state(*kubelet, "plugins/" + driver) == PathState::present;
      read_record(*kubelet, facts);
      gates.read(*kubelet, "config.yaml", kubelet_directory + "/config.yaml");
    }
  }
  for (const char* name : {"etc/kubernetes/kubelet/kubelet-config.json", "etc/kubernetes/kubelet/config.json"}) {
    gates.read(root, name, name);
  }
  gates.read_folder(root, "etc/kubernetes/kubelet/config.json.d");
  facts.config_read = gates.any();
  facts.gates_off = gates.off();
  if (const auto packages = root.read_file("var/lib/dpkg/status", kMaxPackageBytes)) {
    facts.kubelet_version = kubelet_version_in(*packages);
  }
  return facts;
}

}  // namespace neuron::host
