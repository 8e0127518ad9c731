#include "tools/neuron-sim/host_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInfoSuffix = ".info";

bool is_simulated(const std::string& dir) {
  return type_of(dir + "/" + kMarkerFile) == fs::file_type::regular;
}

bool belongs_to(const std::string& owner, const std::string& target) {
  return target == "host" || owner == target || owner.starts_with(target + "/");
}

}  // namespace

Result<void> prepare_directory(const std::string& dir) {
  std::error_code error;
  const auto type = fs::status(dir, error).type();
  if (type == fs::file_type::not_found) {
    fs::create_directories(dir, error);
    if (error) return fail(error_from_errno(error.value(), "making " + dir));
    return {};
  }
  if (type != fs::file_type::directory) return fail(ErrorCode::failed_precondition, dir + " is not a directory");
  if (is_simulated(dir)) return {};
  const bool empty = fs::is_empty(dir, error);
  if (error) return fail(error_from_errno(error.value(), dir));
  if (empty) return {};
  return fail(ErrorCode::failed_precondition, dir + " is not empty and not a simulated host (no " + kMarkerFile +
                                                  "); give an empty or a new directory");
}

Result<void> require_simulated(const std::string& dir) {
  if (is_simulated(dir)) return {};
  return fail(ErrorCode::failed_precondition,
              dir + " is not a simulated host (no " + kMarkerFile + "); make one with neuron-sim node");
}

bool is_whole_host(const std::string& dir) {
  return is_simulated(dir) && type_of(dir + "/" + kPlanFile) == fs::file_type::regular;
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
  return !path.empty() && path.front() != '/' && std::ranges::find(parts, "..") == parts.end();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

fs::file_type type_of(const std::string& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type();
}

bool is_there(const std::string& path) {
  return fs::exists(fs::file_status(type_of(path)));
}

bool is_folder(const std::string& path) {
  return type_of(path) == fs::file_type::directory;
}

std::string SavedFiles::object_path(int number) const {
  return fmt::format("{}/{}/{:06}", directory_, kSavedFolder, number);
}

std::vector<SavedFiles::Entry> SavedFiles::entries() const {
  std::vector<Entry> found;
  const fs::path folder = directory_ + "/" + kSavedFolder;
  for (const fs::path name : names_in(folder)) {
    const auto number = parse_int(name.stem().string(), 0, 999999);
    if (name.extension() != kInfoSuffix || !number) continue;
    Entry entry{*number, "", "", ""};
    std::ifstream info(folder / name);
    const bool whole =
        std::getline(info, entry.kind) && std::getline(info, entry.target) && std::getline(info, entry.path);
    if (whole) found.push_back(std::move(entry));
  }
  std::ranges::sort(found, {}, &Entry::number);
  return found;
}

Result<SavedFiles::Entry> SavedFiles::record(const std::string& target, const std::string& path,
                                             const std::string& kind) const {
  const auto known = entries();
  Entry entry{known.empty() ? 1 : known.back().number + 1, kind, target, path};
  std::error_code error;
  fs::create_directories(directory_ + "/" + kSavedFolder, error);
  std::ofstream info(object_path(entry.number) + kInfoSuffix);
  info << kind << "\n" << target << "\n" << path << "\n";
  info.close();
  if (error || !info) return fail(ErrorCode::internal, directory_ + ": cannot write below " + kSavedFolder);
  return entry;
}

Result<void> SavedFiles::keep(const std::string& target, const std::string& path) const {
  const auto known = entries();
  if (std::ranges::find(known, path, &Entry::path) != known.end()) return {};
  const std::string full = directory_ + "/" + path;
  if (is_folder(full)) return fail(ErrorCode::invalid_argument, path + " is a folder, not a file");
  const bool there = is_there(full);
  TRY_ASSIGN(const Entry entry, record(target, path, there ? "copy" : "absent"));
  if (there && ::linkat(AT_FDCWD, full.c_str(), AT_FDCWD, object_path(entry.number).c_str(), 0) != 0) {
    return fail(error_from_errno(errno, "saving " + full));
  }
  return {};
}

Result<void> SavedFiles::move_away(const std::string& target, const std::string& path) const {
  const std::string full = directory_ + "/" + path;
  if (!is_there(full)) return fail(ErrorCode::not_found, path + " does not exist");
  TRY_ASSIGN(const Entry entry, record(target, path, "moved"));
  if (::rename(full.c_str(), object_path(entry.number).c_str()) != 0) {
    return fail(error_from_errno(errno, "moving " + full));
  }
  return {};
}

Result<void> SavedFiles::put_back(const Entry& entry) const {
  const std::string full = directory_ + "/" + entry.path;
  const std::string object = object_path(entry.number);
  if (!is_folder(fs::path(full).parent_path().string())) {
    return fail(ErrorCode::failed_precondition,
                entry.path + " cannot be restored without its directory; heal the whole device first");
  }
  std::error_code error;
  if (entry.kind == "absent" || is_folder(full) || is_folder(object)) fs::remove_all(full, error);
  if (error) return fail(error_from_errno(error.value(), "removing " + full));
  if (entry.kind != "absent") {
    if (!is_there(object)) return fail(ErrorCode::data_corrupt, object + " is lost; write the host again");
    if (::rename(object.c_str(), full.c_str()) != 0) return fail(error_from_errno(errno, "restoring " + full));
    fs::remove(object, error);  // rename does nothing when both names are the same file already
  }
  fs::remove(object + kInfoSuffix, error);
  return {};
}

Result<int> SavedFiles::restore(const std::string& target) const {
  auto known = entries();
  std::ranges::reverse(known);
  int count = 0;
  for (const auto& entry : known) {
    if (!belongs_to(entry.target, target)) continue;
    TRY(put_back(entry));
    ++count;
  }
  return count;
}

}  // namespace neuron::sim
