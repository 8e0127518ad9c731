#include "plugin/dra/claim/claim_cdi_files.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/core/pool_names.h"
#include "agent/kube/answers.h"
#include "plugin/dra/claim/claim_units.h"
#include "plugin/dra/claim/claims_file.h"
#include "plugin/dra/claim/json_fields.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

constexpr std::string_view kEnding = ".json";
constexpr std::size_t kMaxFileBytes = 1U << 20U;
constexpr std::size_t kMaxFiles = 4096;
constexpr std::size_t kMaxUid = 64;
constexpr int kMaxIndex = 65535;

Result<void> make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(error_from_errno(error.value(), path));
  return {};
}

Result<void> unlink_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail(error_from_errno(errno, "removing " + path));
  return {};
}

Hardware all_interfaces(const grant::NodeUnits& node) {
  Hardware hardware;
  for (const model::EfaInterface& efa : node.snapshot().host.efas) {
    if (!efa.name.empty()) hardware.add({{}, {efa.name}});
  }
  return hardware;
}

// The devices of the device nodes, whole.
Hardware hardware_of_nodes(const json& edits) {
  constexpr std::string_view kNode = "/dev/neuron";
  Hardware hardware;
  for (const json& node : list_of(edits, "deviceNodes")) {
    const std::string path = text_of(node, "path");
    if (!path.starts_with(kNode)) continue;
    if (const auto index = parse_int(std::string_view(path).substr(kNode.size()), 0, kMaxIndex)) {
      hardware.add({{{*index, {}}}, {}});
    }
  }
  return hardware;
}

Hardware hardware_of_device(const grant::NodeUnits* node, const std::string& device, const json& edits) {
  const auto name = core::parse_pool_name(device);
  if (node != nullptr) {
    if (auto known = hardware_of(*node, device)) return *std::move(known);
  }
  if (name && std::holds_alternative<core::EfaName>(*name)) return {{}, {std::get<core::EfaName>(*name).label}};
  return hardware_of_nodes(edits);
}

// "<uid>-neuron-device-3", "<uid>-admin-neuron-device-3"; "<uid>-request-chips" has no nodes.
struct CdiName {
  std::string pool_device;
  bool is_admin = false;
};

std::optional<CdiName> parse_cdi_name(std::string_view name, const std::string& uid) {
  constexpr std::string_view kRequest = "request-", kAdmin = "admin-";
  if (!name.starts_with(uid + "-")) return std::nullopt;
  name.remove_prefix(uid.size() + 1);
  if (name.starts_with(kRequest)) return std::nullopt;
  const bool is_admin = name.starts_with(kAdmin);
  if (is_admin) name.remove_prefix(kAdmin.size());
  return CdiName{std::string(name), is_admin};
}

// One CDI device of a claim's file: a device of the pool, or the variables of a request.
void add_cdi_device(const grant::NodeUnits* node, const json& device, const std::string& kind, PreparedClaim& claim) {
  const std::string full_name = text_of(device, "name");
  const auto name = parse_cdi_name(full_name, claim.uid);
  if (!name) return;
  PreparedRequest request;
  request.share.admin_access = name->is_admin;
  request.share.hardware = hardware_of_device(node, name->pool_device, member(device, "containerEdits"));
  claim.requests.push_back(std::move(request));
  claim.devices.push_back({{}, "", name->pool_device, {kind + "=" + full_name}, {}});
}

nlohmann::ordered_json nodes_json(const GrantedNodes& granted) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& node : granted.nodes) {
    list.push_back({{"path", node.container_path}, {"hostPath", node.host_path}, {"permissions", granted.permissions}});
  }
  return list;
}

// Whether some of the nodes is that of an interface of this node.
bool is_of_an_interface(const nlohmann::ordered_json& nodes, const GrantFacts& facts) {
  const GrantedNodes known = nodes_of(facts, all_interfaces(facts.node), false);
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
    return std::any_of(known.nodes.begin(), known.nodes.end(), [&](const auto& one) {
      return node.is_object() && node.value("path", "") == one.container_path;
    });
  });
}

// The nodes of one CDI device of a file as they are now, of which it had `before`.
nlohmann::ordered_json newest_nodes(const CdiName& name, nlohmann::ordered_json before, const GrantFacts& facts) {
  const auto parsed = core::parse_pool_name(name.pool_device);
  const bool is_interface = parsed && std::holds_alternative<core::EfaName>(*parsed);
  const auto hardware = hardware_of(facts.node, name.pool_device);
  const GrantedNodes now =
      hardware ? nodes_of(facts, *hardware, name.is_admin) : GrantedNodes{{}, name.is_admin ? "w" : "rw"};
  if (!now.nodes.empty()) return nodes_json(now);
  if (is_interface && (name.is_admin || is_of_an_interface(before, facts))) return nlohmann::ordered_json::array();
  for (auto& node : before) {
    if (node.is_object()) node["permissions"] = now.permissions;
  }
  return before;
}

}  // namespace

std::string newest_cdi_text(const std::string& prepared, const std::string& uid, const GrantFacts& facts) {
  using nlohmann::ordered_json;
  const ordered_json spec = ordered_json::parse(prepared, nullptr, false);
  if (!spec.is_object() || !spec.contains("devices") || !spec["devices"].is_array()) return prepared;
  ordered_json newest = spec;
  newest["devices"] = ordered_json::array();
  for (ordered_json device : spec["devices"]) {
    const auto name = device.is_object() && device.contains("name") && device["name"].is_string()
                          ? parse_cdi_name(device["name"].get<std::string>(), uid)
                          : std::nullopt;
    ordered_json* const edits = name && device.contains("containerEdits") ? &device["containerEdits"] : nullptr;
    if (edits != nullptr && edits->is_object() && edits->contains("deviceNodes") &&
        (*edits)["deviceNodes"].is_array()) {
      (*edits)["deviceNodes"] = newest_nodes(*name, (*edits)["deviceNodes"], facts);
      if ((*edits)["deviceNodes"].empty()) edits->erase("deviceNodes");
      if (edits->empty()) continue;  // an empty one makes runtimes refuse the file
    }
    newest["devices"].push_back(std::move(device));
  }
  if (newest == spec) return prepared;
  return newest["devices"].empty() ? "" : newest.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

bool is_plain_uid(std::string_view uid) {
  return !uid.empty() && uid.size() <= kMaxUid && std::all_of(uid.begin(), uid.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  });
}

ClaimCdiFiles::ClaimCdiFiles(std::string directory, const std::string& driver)
    : directory_(std::move(directory)), prefix_("k8s." + driver + "-claim_") {}

std::string ClaimCdiFiles::path_of(const std::string& uid) const {
  return directory_ + "/" + prefix_ + uid + std::string(kEnding);
}

Result<void> ClaimCdiFiles::write(const std::string& uid, const std::string& text) {
  TRY(keep_file(path_of(uid), text));
  return {};
}

Result<void> ClaimCdiFiles::remove(const std::string& uid) {
  return unlink_file(path_of(uid));
}

bool ClaimCdiFiles::has(const std::string& uid) const {
  const auto text = read_text_file(path_of(uid), kMaxFileBytes);
  return text && kube::parse_object(*text, "a CDI file");
}

bool ClaimCdiFiles::is_dead() const {
  return is_removed_directory(directory_);
}

std::vector<std::string> ClaimCdiFiles::uids() {
  std::set<std::string> found;
  std::vector<std::string> unfinished;
  std::error_code error;
  std::filesystem::directory_iterator files(directory_, error);
  for (; !error && files != std::filesystem::directory_iterator() && found.size() < kMaxFiles; files.increment(error)) {
    std::string name = files->path().filename().string();
    if (!name.starts_with(prefix_)) continue;
    if (name.ends_with(".new")) unfinished.push_back(directory_ + "/" + name);
    if (!name.ends_with(kEnding)) continue;
    name = name.substr(prefix_.size(), name.size() - prefix_.size() - kEnding.size());
    if (is_plain_uid(name)) found.insert(std::move(name));
  }
  for (const std::string& path : unfinished) (void)unlink_file(path);  // no runtime reads it, and it is overwritten
  return {found.begin(), found.end()};
}

std::vector<PreparedClaim> ClaimCdiFiles::rebuild(const grant::NodeUnits* node) {
  std::vector<PreparedClaim> claims;
  for (const std::string& uid : uids()) {
    auto text = read_text_file(path_of(uid), kMaxFileBytes);
    if (!text) continue;
    const auto parsed = kube::parse_object(*text, "a CDI file");
    const json& spec = parsed ? *parsed : member(json(), "");
    PreparedClaim claim;
    claim.is_completed = true;
    claim.uid = uid;
    for (const json& device : list_of(spec, "devices")) add_cdi_device(node, device, text_of(spec, "kind"), claim);
    claim.cdi_text = *std::move(text);
    if (!claim.devices.empty()) claims.push_back(std::move(claim));
  }
  return claims;
}

std::optional<CdiWatch> CdiWatch::open(const std::string& directory) {
  constexpr unsigned kEvents = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify.valid() || !make_directory(directory)) return std::nullopt;
  if (::inotify_add_watch(inotify.get(), directory.c_str(), kEvents) < 0) return std::nullopt;
  return CdiWatch(std::move(inotify));
}

CdiWatch::News CdiWatch::take() {
  bool is_gone = false, is_changed = false;
  alignas(inotify_event) std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (count <= 0) break;
    for (const char* at = buffer.data(); at < buffer.data() + count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof(inotify_event) + event->len;
      const std::string_view name(event->len > 0 ? event->name : "");
      is_gone |= (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_IGNORED | IN_UNMOUNT | IN_Q_OVERFLOW)) != 0;
      is_changed |= name.ends_with(kEnding);
    }
  }
  return is_gone ? News::ended : is_changed ? News::files_gone : News::nothing;
}

}  // namespace neuron::plugin::dra
