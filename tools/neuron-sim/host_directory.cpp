#include "tools/neuron-sim/host_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;

bool is_simulated(const fs::path& dir) {
  std::error_code error;
  return fs::symlink_status(dir / kMarkerFile, error).type() == fs::file_type::regular;
}

namespace fs = std::filesystem;

constexpr std::string_view kInfoSuffix = ".info";

std::string_view name_of_kind(int kind) {
  constexpr std::string_view kNames[] = {"copy", "moved", "absent"};
  return kNames[kind];
}

bool belongs_to(const std::string& owner, const std::string& target) {
  return target == "host" || owner == target || owner.starts_with(target + "/");
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() == fs::file_type::directory;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

}  // namespace

Result<void> prepare_directory(const std::string& dir) {
  std::error_code error;
  const fs::path path(dir);
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    fs::create_directories(path, error);
    if (error) return fail(error_from_errno(error.value(), "making " + dir));
    return {};
  }
  if (status.type() != fs::file_type::directory) {
    return fail(ErrorCode::failed_precondition, dir + " is not a directory");
  }
  if (is_simulated(path)) return {};
  const bool empty = fs::is_empty(path, error);
  if (error) return fail(error_from_errno(error.value(), dir));
  if (empty) return {};
  return fail(ErrorCode::failed_precondition, dir + " is not empty and not a simulated host (no " + kMarkerFile +
                                                  "); give an empty or a new directory");
}

Result<void> require_simulated(const std::string& dir) {
  if (is_simulated(fs::path(dir))) return {};
  return fail(ErrorCode::failed_precondition,
              dir + " is not a simulated host (no " + kMarkerFile + "); make one with neuron-sim node");
}

bool is_whole_host(const std::string& dir) {
  std::error_code error;
  return is_simulated(fs::path(dir)) &&
         fs::symlink_status(fs::path(dir) / kPlanFile, error).type() == fs::file_type::regular;
}

Result<Fd> claim_host(const std::string& dir) {
  TRY(require_simulated(dir));
  const std::string path = dir + "/" + kClaimFile;
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd.valid()) return fail(error_from_errno(errno, path));
  std::array<char, 16> holder{};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(error_from_errno(errno, "locking " + path));
    const ssize_t length = ::pread(fd.get(), holder.data(), holder.size(), 0);
    const std::string_view text(holder.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    const auto pid = parse_int(trim(text), 1, 1 << 22);
    return fail(ErrorCode::failed_precondition, "another neuron-sim load runs on " + dir +
                                                    (pid ? " (pid " + std::to_string(*pid) + ")" : "") +
                                                    "; stop it first");
  }
  // The holder, for that message only; the pid of a killed process is replaced.
  const std::string self = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), self.data(), self.size(), 0) < 0) {
    return fail(error_from_errno(errno, path));
  }
  return fd;
}

Result<Fd> lock_host(const std::string& dir) {
  TRY(require_simulated(dir));
  const std::string marker = dir + "/" + kMarkerFile;
  Fd fd(::open(marker.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || ::flock(fd.get(), LOCK_EX) != 0) return fail(error_from_errno(errno, "locking " + marker));
  return fd;
}

bool stays_below(std::string_view path) {
  const auto parts = split(path, '/');
  return !path.empty() && path.front() != '/' &&
         std::none_of(parts.begin(), parts.end(), [](std::string_view part) { return part == ".."; });
}

std::string SavedFiles::object_path(int number) const {
  char name[16];
  std::snprintf(name, sizeof name, "%06d", number);
  return directory_ + "/" + kSavedFolder + "/" + name;
}

std::vector<SavedFiles::Entry> SavedFiles::entries() const {
  std::vector<Entry> found;
  std::error_code error;
  for (fs::directory_iterator it(directory_ + "/" + kSavedFolder, error), end; !error && it != end;
       it.increment(error)) {
    if (it->path().extension() != kInfoSuffix) continue;
    const auto number = parse_int(it->path().stem().string(), 0, 999999);
    std::ifstream info(it->path());
    Entry entry;
    std::string kind;
    if (!number || !std::getline(info, kind) || !std::getline(info, entry.target) || !std::getline(info, entry.path)) {
      continue;
    }
    entry.number = *number;
    entry.kind = kind == "moved" ? Kind::moved : kind == "absent" ? Kind::absent : Kind::copy;
    found.push_back(std::move(entry));
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
  return found;
}

Result<SavedFiles::Entry> SavedFiles::record(const std::string& target, const std::string& path, Kind kind) const {
  const auto known = entries();
  Entry entry{known.empty() ? 1 : known.back().number + 1, kind, target, path};
  std::error_code error;
  fs::create_directories(directory_ + "/" + kSavedFolder, error);
  std::ofstream info(object_path(entry.number) + std::string(kInfoSuffix));
  info << name_of_kind(static_cast<int>(kind)) << "\n" << target << "\n" << path << "\n";
  info.close();
  if (error || !info) return fail(ErrorCode::internal, directory_ + ": cannot write below " + kSavedFolder);
  return entry;
}

Result<void> SavedFiles::keep(const std::string& target, const std::string& path) const {
  const auto known = entries();
  const bool kept = std::any_of(known.begin(), known.end(), [&](const Entry& entry) { return entry.path == path; });
  if (kept) return {};
  const std::string full = directory_ + "/" + path;
  if (is_folder(full)) return fail(ErrorCode::invalid_argument, path + " is a folder, not a file");
  const bool there = is_there(full);
  TRY_ASSIGN(const Entry entry, record(target, path, there ? Kind::copy : Kind::absent));
  if (there && ::linkat(AT_FDCWD, full.c_str(), AT_FDCWD, object_path(entry.number).c_str(), 0) != 0) {
    return fail(error_from_errno(errno, "saving " + full));
  }
  return {};
}

Result<void> SavedFiles::move_away(const std::string& target, const std::string& path) const {
  const std::string full = directory_ + "/" + path;
  if (!is_there(full)) return fail(ErrorCode::not_found, path + " does not exist");
  TRY_ASSIGN(const Entry entry, record(target, path, Kind::moved));
  if (::rename(full.c_str(), object_path(entry.number).c_str()) != 0) {
    return fail(error_from_errno(errno, "moving " + full));
  }
  return {};
}

Result<void> SavedFiles::put_back(const Entry& entry) const {
  const std::string full = directory_ + "/" + entry.path;
  const std::string object = object_path(entry.number);
  if (!is_folder(fs::path(full).parent_path())) {
    return fail(ErrorCode::failed_precondition,
                entry.path + " cannot be restored without its directory; heal the whole device first");
  }
  std::error_code error;
  if (entry.kind == Kind::absent || is_folder(full) || is_folder(object)) fs::remove_all(full, error);
  if (error) return fail(error_from_errno(error.value(), "removing " + full));
  if (entry.kind != Kind::absent) {
    if (!is_there(object)) return fail(ErrorCode::data_corrupt, object + " is lost; write the host again");
    if (::rename(object.c_str(), full.c_str()) != 0) return fail(error_from_errno(errno, "restoring " + full));
    fs::remove(object, error);  // rename does nothing when both names are the same file already
  }
  fs::remove(object + std::string(kInfoSuffix), error);
  return {};
}

Result<int> SavedFiles::restore(const std::string& target) const {
  auto known = entries();
  std::reverse(known.begin(), known.end());
  int count = 0;
  for (const auto& entry : known) {
    if (!belongs_to(entry.target, target)) continue;
    TRY(put_back(entry));
    ++count;
  }
  return count;
}

}  // namespace neuron::sim
