#include "plugin/dra/claim_cdi_files.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "agent/base/file_text.h"
#include "agent/base/parse.h"
#include "agent/core/pool_names.h"
#include "agent/kube/json_text.h"
#include "plugin/dra/claim_units.h"
#include "plugin/dra/claims_file.h"
#include "plugin/dra/json_fields.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

constexpr std::string_view kEnding = ".json";
constexpr std::size_t kMaxFileBytes = 1U << 20U;
constexpr std::size_t kMaxFiles = 4096;
constexpr std::size_t kMaxUid = 64;
constexpr int kMaxIndex = 65535;

Result<std::string> read_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.valid()) return fail(error_from_errno(errno, path));
  return read_all(file.get(), kMaxFileBytes, path);
}

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

// One CDI device of a claim's file: a device of the pool, or the variables of a request.
void add_cdi_device(const grant::NodeUnits* node, const json& device, const std::string& kind, PreparedClaim& claim) {
  constexpr std::string_view kRequest = "request-", kAdmin = "admin-";
  const std::string full_name = text_of(device, "name");
  if (!full_name.starts_with(claim.uid + "-")) return;
  std::string name = full_name.substr(claim.uid.size() + 1);
  if (name.starts_with(kRequest)) return;
  const bool is_admin = name.starts_with(kAdmin);
  if (is_admin) name.erase(0, kAdmin.size());
  PreparedRequest request;
  request.share.admin_access = is_admin;
  request.share.hardware = hardware_of_device(node, name, member(device, "containerEdits"));
  claim.requests.push_back(std::move(request));
  claim.devices.push_back({{}, "", name, {kind + "=" + full_name}, {}});
}

}  // namespace

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
  if (text.empty()) return remove(uid);
  const std::string path = path_of(uid);
  if (const auto old = read_file(path); old && *old == text) return {};
  auto written = write_by_rename(path, text);
  if (written || written.error().code != ErrorCode::not_found) return written;
  TRY(make_directory(directory_));
  return write_by_rename(path, text);
}

Result<void> ClaimCdiFiles::remove(const std::string& uid) {
  return unlink_file(path_of(uid));
}

bool ClaimCdiFiles::is_dead() const {
  struct stat info {};
  return ::stat(directory_.c_str(), &info) == 0 && info.st_nlink == 0;
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
  for (const std::string& path : unfinished) (void)unlink_file(path);  // nobody reads it, and it is written over
  return {found.begin(), found.end()};
}

std::vector<PreparedClaim> ClaimCdiFiles::rebuild(const grant::NodeUnits* node) {
  std::vector<PreparedClaim> claims;
  for (const std::string& uid : uids()) {
    auto text = read_file(path_of(uid));
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

bool CdiWatch::open() {
  inotify_ = Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  constexpr unsigned kEvents = IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  if (!make_directory(directory_)) return false;
  return ::inotify_add_watch(inotify_.get(), directory_.c_str(), kEvents) >= 0;
}

bool CdiWatch::take() {
  if (!inotify_.valid()) {
    if (!open()) inotify_.reset();
    return true;
  }
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
  if (is_gone && !open()) inotify_.reset();
  return is_gone || is_changed;
}

}  // namespace neuron::plugin::dra
