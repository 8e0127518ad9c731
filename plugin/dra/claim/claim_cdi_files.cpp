#include "plugin/dra/claim/claim_grant.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/core/hardware.h"
#include "agent/grant/grant.h"
#include "agent/kube/answers.h"
#include "plugin/dra/claim/claim_record.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kEnding = ".json";
constexpr std::string_view kRequest = "request-", kAdmin = "admin-";
constexpr std::string_view kVisibleCores = "NEURON_RT_VISIBLE_CORES";
constexpr std::size_t kMaxFileBytes = 1U << 20U;

// The device nodes of a CDI device, and how they may be opened.
struct GrantedNodes {
  std::vector<grant::Grant::DeviceNode> nodes;
  std::string permissions;
};

// "rw", or "w" for admin access, which may not use the hardware. A Neuron node that is opened write-only answers
// questions and is not counted as used; any other way of opening it attaches the process
// (docs/reference/driver.md#opening-a-device). A verbs node has no such way: its ioctls work however it was opened, so
// admin access gets none. Of an interface whose verbs node is not known now there is none either.
GrantedNodes nodes_of(const GrantFacts& facts, const Hardware& hardware, bool admin_access) {
  std::vector<int> devices, efas;
  for (const HeldDevice& held : hardware.devices) devices.push_back(held.device);
  auto nodes = grant::grant_of_cores(facts.node, devices, {}, facts.options).device_nodes;
  if (admin_access) return {std::move(nodes), "w"};
  for (const std::string& name : hardware.efas) {
    if (const auto unit = facts.node.unit_of(model::Resource::efa, name)) efas.push_back(*unit);
  }
  auto more = grant::grant_of_efas(facts.node, efas, facts.options).device_nodes;
  std::move(more.begin(), more.end(), std::back_inserter(nodes));
  return {std::move(nodes), "rw"};
}

// "<uid>-neuron-device-3", "<uid>-admin-neuron-device-3"; "<uid>-request-chips" has no nodes.
struct CdiName {
  std::string pool_device;  // or a core::ShareName
  bool is_admin = false;
};

std::optional<CdiName> parse_cdi_name(std::string_view name, const std::string& uid) {
  if (!name.starts_with(uid + "-")) return std::nullopt;
  name.remove_prefix(uid.size() + 1);
  if (name.starts_with(kRequest)) return std::nullopt;
  const bool is_admin = name.starts_with(kAdmin);
  if (is_admin) name.remove_prefix(kAdmin.size());
  return CdiName{std::string(name), is_admin};
}

bool is_interface(const std::string& pool_device) {
  const auto name = core::parse_pool_name(pool_device);
  return name && std::holds_alternative<core::EfaName>(*name);
}

// A claim's cores of a shared device; nullopt: all that the name means.
std::optional<core::ShareName> share_in(const std::string& pool_device) {
  const auto name = core::parse_pool_name(pool_device);
  const auto* share = name ? std::get_if<core::ShareName>(&*name) : nullptr;
  return share != nullptr ? std::optional(*share) : std::nullopt;
}

// The hardware of a pool device: that of a share by its name, else by the scan, else an interface by its label, else
// the devices of the device nodes, whole.
Hardware rebuilt_hardware(const grant::NodeUnits* node, const std::string& pool_device, const json& edits) {
  constexpr std::string_view kNode = "/dev/neuron";
  constexpr int kMaxIndex = 65535;
  if (const auto share = share_in(pool_device)) return {{{share->device, share->places}}, {}};
  if (node != nullptr) {
    if (auto known = possible_hardware_of(*node, pool_device)) return *std::move(known);
  }
  if (is_interface(pool_device)) return {{}, {std::get<core::EfaName>(*core::parse_pool_name(pool_device)).label}};
  Hardware hardware;
  for (const json& one : kube::list_of(edits, "deviceNodes")) {
    const std::string path = kube::text_of(one, "path");
    if (!path.starts_with(kNode)) continue;
    if (const auto index = parse_int(std::string_view(path).substr(kNode.size()), 0, kMaxIndex)) {
      hardware.add({{{*index, {}}}, {}});
    }
  }
  return hardware;
}

// One CDI device of a claim's file: a device of the pool, or the variables of a request.
void add_cdi_device(const grant::NodeUnits* node, const json& device, const std::string& kind, ClaimRecord& record) {
  const std::string full_name = kube::text_of(device, "name");
  const auto name = parse_cdi_name(full_name, record.uid);
  if (!name) return;
  RecordedRequest request;
  request.planned.admin_access = name->is_admin;
  request.planned.hardware = rebuilt_hardware(node, name->pool_device, kube::member(device, "containerEdits"));
  record.requests.push_back(std::move(request));
  const auto share = share_in(name->pool_device);
  const std::string device_name = share ? core::to_string(core::DeviceName{share->device}) : name->pool_device;
  record.devices.push_back(
      {{}, "", device_name, {kind + "=" + full_name}, {}, share ? name->pool_device : std::string()});
}

// It has gone, or is a folder, a link or too long.
bool is_no_file_of_ours(const Error& error) {
  return error.code == ErrorCode::data_corrupt || error.os_errno == ENOENT || error.os_errno == EISDIR ||
         error.os_errno == ELOOP;
}

// Whether some of the nodes is that of an interface of this node.
bool is_of_an_interface(const ordered_json& nodes, const GrantFacts& facts) {
  Hardware all;
  for (const model::EfaInterface& efa : facts.node.snapshot().host.efas) {
    if (!efa.name.empty()) all.add({{}, {efa.name}});
  }
  const GrantedNodes known = nodes_of(facts, all, false);
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
    return std::any_of(known.nodes.begin(), known.nodes.end(), [&](const auto& one) {
      return node.is_object() && node.value("path", "") == one.container_path;
    });
  });
}

// The nodes of one CDI device of a file as they are now, of which it had `before`.
ordered_json newest_nodes(const CdiName& name, ordered_json before, const GrantFacts& facts) {
  const auto hardware = hardware_of(facts.node, name.pool_device);
  const GrantedNodes now =
      hardware ? nodes_of(facts, *hardware, name.is_admin) : GrantedNodes{{}, name.is_admin ? "w" : "rw"};
  if (!now.nodes.empty()) {
    auto list = ordered_json::array();
    for (const auto& node : now.nodes) {
      list.push_back({{"path", node.container_path}, {"hostPath", node.host_path}, {"permissions", now.permissions}});
    }
    return list;
  }
  if (is_interface(name.pool_device) && (name.is_admin || is_of_an_interface(before, facts))) {
    return ordered_json::array();
  }
  for (auto& node : before) {
    if (node.is_object()) node["permissions"] = now.permissions;
  }
  return before;
}

// The variables of a request by which its core numbers mean the same though a runtime would read another LNC now.
void add_lnc(ordered_json& device, const std::string& uid, int lnc) {
  const auto name = device.is_object() ? device.find("name") : device.end();
  if (name == device.end() || !name->is_string() || !device.contains("containerEdits")) return;
  if (!name->get<std::string>().starts_with(uid + "-" + std::string(kRequest))) return;
  ordered_json& edits = device["containerEdits"];
  if (!edits.is_object() || !edits.contains("env") || !edits["env"].is_array()) return;
  const auto has = [&edits](std::string_view variable) {
    return std::any_of(edits["env"].begin(), edits["env"].end(), [&](const ordered_json& one) {
      return one.is_string() && one.get<std::string>().starts_with(std::string(variable) + "=");
    });
  };
  if (!has(kVisibleCores) || has(grant::kLncVariable)) return;
  edits["env"].insert(edits["env"].begin(), std::string(grant::kLncVariable) + "=" + std::to_string(lnc));
}

}  // namespace

ClaimGrant grant_of_claim(const GrantFacts& facts, const std::string& driver, const std::string& uid,
                          const std::vector<PlannedDevice>& devices,
                          const std::map<std::string, Environment>& environments) {
  ClaimGrant answer;
  const std::string kind = core::claim_cdi_kind(driver);
  std::vector<grant::CdiDevice> cdi;
  std::map<std::string, std::size_t> last_of_request;
  for (const PlannedDevice& one : devices) {
    PreparedDevice prepared{one.requests, one.pool, one.device, {}, one.share_id, one.share};
    GrantedNodes granted = nodes_of(facts, one.hardware, one.admin_access);
    const auto access = one.admin_access ? core::ClaimAccess::admin : core::ClaimAccess::use;
    grant::CdiDevice device{core::claim_cdi_name(uid, one.share.empty() ? one.device : one.share, access),
                            std::move(granted.nodes),
                            std::move(granted.permissions),
                            {}};
    if (!device.device_nodes.empty()) prepared.cdi_ids.push_back(kind + '=' + device.name);
    for (const std::string& request : one.requests) last_of_request[request] = answer.devices.size();
    cdi.push_back(std::move(device));
    answer.devices.push_back(std::move(prepared));
  }
  for (const auto& [request, environment] : environments) {
    const auto last = last_of_request.find(request);
    if (environment.empty() || last == last_of_request.end()) continue;
    cdi.push_back({uid + "-" + std::string(kRequest) + request, {}, "rw", environment});
    answer.devices[last->second].cdi_ids.push_back(kind + '=' + cdi.back().name);
  }
  answer.cdi_text = grant::cdi_text(kind, cdi);
  return answer;
}

std::string newest_cdi_text(const std::string& prepared, const std::string& uid, const GrantFacts& facts,
                            std::optional<int> node_lnc) {
  const std::optional<int> runtime_lnc = facts.node.runtime_lnc();
  const bool needs_lnc = node_lnc && runtime_lnc && *node_lnc != *runtime_lnc;
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
    if (needs_lnc) add_lnc(device, uid, *node_lnc);
    newest["devices"].push_back(std::move(device));
  }
  if (newest == spec) return prepared;
  return newest["devices"].empty() ? "" : newest.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
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

bool ClaimCdiFiles::has(const std::string& uid) const {
  const auto text = read_text_file(path_of(uid), kMaxFileBytes);
  return text && kube::parse_object(*text, "a CDI file");
}

bool ClaimCdiFiles::is_dead() const {
  return is_removed_directory(directory_);
}

Result<std::vector<std::string>> ClaimCdiFiles::uids() {
  constexpr std::size_t kMaxFiles = 4096;
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
    if (is_object_uid(name)) found.insert(std::move(name));
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail(error_from_errno(error.value(), "listing " + directory_));
  }
  for (const std::string& path : unfinished) ::unlink(path.c_str());  // never read, and overwritten by the next write
  return std::vector<std::string>(found.begin(), found.end());
}

Result<std::vector<ClaimRecord>> ClaimCdiFiles::rebuild(const grant::NodeUnits* node) {
  std::vector<ClaimRecord> records;
  TRY_ASSIGN(const std::vector<std::string> all, uids());
  for (const std::string& uid : all) {
    auto text = read_text_file(path_of(uid), kMaxFileBytes);
    if (!text && !is_no_file_of_ours(text.error())) return fail(std::move(text).error());
    if (!text) continue;
    const auto parsed = kube::parse_object(*text, "a CDI file");
    const json& spec = parsed ? *parsed : kube::member(json(), "");
    ClaimRecord record;
    record.is_completed = true;
    record.uid = uid;
    const std::string kind = kube::text_of(spec, "kind");
    for (const json& device : kube::list_of(spec, "devices")) add_cdi_device(node, device, kind, record);
    record.cdi_text = *std::move(text);
    if (!record.devices.empty()) records.push_back(std::move(record));
  }
  return records;
}

}  // namespace neuron::plugin::dra
