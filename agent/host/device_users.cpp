#include "agent/host/device_users.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "agent/base/parse.h"
#include "agent/host/attributes.h"
#include "agent/host/usage_processes.h"

namespace neuron::host {
namespace {

constexpr std::size_t kMaxDevicesText = std::size_t{64} << 10U;  // proc/devices
constexpr int kMaxNumber = 1 << 30;

// A name that is a number: a process, or one of its files.
std::optional<int> number_of(std::string_view name) {
  const bool plain = !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
  return plain ? parse_int(name, 0, kMaxNumber) : std::nullopt;
}

// N of ".../dev/neuron<N>", where "..." is nothing but the way to the root: links are absolute on a live machine and
// relative in a capture. The kernel adds " (deleted)" when the name is gone and the file is still open.
std::optional<int> named_device(std::string_view target) {
  constexpr std::string_view kDeleted = " (deleted)";
  constexpr std::string_view kFolder = "dev/";
  if (target.ends_with(kDeleted)) target.remove_suffix(kDeleted.size());
  if (target.starts_with('/')) target.remove_prefix(1);
  while (target.starts_with("../")) target.remove_prefix(3);
  if (!target.starts_with(kFolder)) return std::nullopt;
  const auto index = device_index_of(target.substr(kFolder.size()));
  return index && *index < kMaxDevices ? index : std::nullopt;
}

// The driver's major number: the line "<number> neuron" in proc/devices, of the part on character devices.
std::optional<unsigned> driver_major(const FsRoot& root) {
  const auto text = root.read_file("proc/devices", kMaxDevicesText);
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n')) {
    if (line == "Block devices:") break;
    const auto space = line.find(' ');
    if (space == std::string_view::npos || line.substr(space + 1) != "neuron") continue;
    if (const auto number = parse_int(line.substr(0, space), 0, 4095)) return static_cast<unsigned>(*number);
  }
  return std::nullopt;
}

// N of an open file on a live machine. Not asked of a file system that would have to answer (a container's own, say).
std::optional<int> opened_device(const FsRoot& file_folder, int file, unsigned major) {
  const std::string path = file_folder.path() + '/' + std::to_string(file);
  struct statx info {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &info) != 0) return std::nullopt;
  if (!S_ISCHR(info.stx_mode) || info.stx_rdev_major != major || info.stx_rdev_minor >= kMaxDevices)
    return std::nullopt;
  return static_cast<int>(info.stx_rdev_minor);
}

enum class Access { attached, other, refused };

// From "flags:" of proc/<pid>/fdinfo/<file>, octal as in open(2). A file that is closed by now is none.
Access access_of(const FsRoot& root, int pid, int file) {
  constexpr std::string_view kKey = "flags:";
  const auto text = root.read_attribute("proc/" + std::to_string(pid) + "/fdinfo/" + std::to_string(file));
  if (!text) return text.error().code == ErrorCode::permission_denied ? Access::refused : Access::other;
  for (std::string_view line : split(*text, '\n')) {
    if (!line.starts_with(kKey)) continue;
    const std::string_view digits = trim(line.substr(kKey.size()));
    if (digits.empty()) return Access::other;
    unsigned flags = 0;
    for (const char digit : digits) {
      if (digit < '0' || digit > '7') return Access::other;
      flags = flags << 3U | static_cast<unsigned>(digit - '0');
    }
    const unsigned mode = flags & O_ACCMODE;
    return (flags & O_PATH) == 0 && (mode == O_RDONLY || mode == O_RDWR) ? Access::attached : Access::other;
  }
  return Access::other;
}

std::string processes(std::size_t number) {
  return std::to_string(number) + (number == 1 ? " process" : " processes");
}

// A process that ended while it was looked at.
bool is_gone(const Error& error) {
  return error.code == ErrorCode::not_found || error.os_errno == ESRCH;
}

// A process that may see the files of pid 1, which every machine has, may see those of all processes. Listing them is
// not enough: root without CAP_SYS_PTRACE may list them, but read no link.
Result<void> check_rights(const FsRoot& root) {
  constexpr const char* kFolder = "proc/1/fd";
  std::string first;
  TRY(root.visit(kFolder, [&first](std::string_view name) {
    first = name;
    return false;
  }));
  if (first.empty()) return {};
  const auto target = root.read_link(kFolder + ('/' + first));
  if (!target && target.error().code == ErrorCode::permission_denied) return fail(target.error());
  return {};
}

// One search of all processes.
class Search {
 public:
  Search(const FsRoot& root, const DeviceUserBounds& bounds) : root_(root), bounds_(bounds) {
    if (root.is_live()) major_ = driver_major(root);
  }

  void look_at(int pid);
  void stop(std::string reason) { stopped_ = std::move(reason); }
  [[nodiscard]] DeviceUsers result() const;

 private:
  // Of one process.
  void look_at_files(int pid, std::vector<int> files);
  [[nodiscard]] bool look_at_file(int pid, const FsRoot& file_folder, int file);
  [[nodiscard]] Result<std::optional<int>> device_of(const FsRoot& file_folder, int file) const;

  const FsRoot& root_;
  const DeviceUserBounds& bounds_;
  std::optional<unsigned> major_;
  std::map<std::pair<int, int>, int> users_;  // device, pid -> file
  std::size_t refused_ = 0;
  std::size_t crowded_ = 0;  // with more files than were looked at
  std::string stopped_;
};

Result<std::optional<int>> Search::device_of(const FsRoot& file_folder, int file) const {
  TRY_ASSIGN(const auto target, file_folder.read_link(std::to_string(file)));
  const auto named = named_device(target);
  return named && major_ ? opened_device(file_folder, file, *major_) : named;
}

// Whether the other files of the process may be looked at.
bool Search::look_at_file(int pid, const FsRoot& file_folder, int file) {
  const auto device = device_of(file_folder, file);
  if (!device) return device.error().code != ErrorCode::permission_denied;
  if (!*device || users_.contains({**device, pid})) return true;
  const Access access = access_of(root_, pid, file);
  if (access == Access::attached) users_.emplace(std::pair(**device, pid), file);
  return access != Access::refused;
}

void Search::look_at_files(int pid, std::vector<int> files) {
  std::sort(files.begin(), files.end());
  if (files.size() > bounds_.files_each) {
    files.resize(bounds_.files_each);
    ++crowded_;
  }
  const auto folder = root_.subdirectory("proc/" + std::to_string(pid) + "/fd");
  if (!folder) {
    if (!is_gone(folder.error())) ++refused_;
    return;
  }
  const bool seen = std::all_of(files.begin(), files.end(), [&](int file) { return look_at_file(pid, *folder, file); });
  if (!seen) ++refused_;
}

void Search::look_at(int pid) {
  std::vector<int> files;
  const auto seen = root_.visit("proc/" + std::to_string(pid) + "/fd", [&files](std::string_view name) {
    if (const auto file = number_of(name)) files.push_back(*file);
    return true;
  });
  if (!seen && !is_gone(seen.error())) ++refused_;
  if (seen && !files.empty()) look_at_files(pid, std::move(files));
}

DeviceUsers Search::result() const {
  DeviceUsers result;
  for (const auto& [place, file] : users_) result.users.push_back({place.first, place.second, file});
  std::string& gap = result.gap;
  const auto add = [&gap](const std::string& reason) { gap += (gap.empty() ? "" : ", ") + reason; };
  if (!stopped_.empty()) add(stopped_);
  if (refused_ > 0) add(processes(refused_) + " not accessible");
  if (crowded_ > 0) {
    add(processes(crowded_) + " with more than " + std::to_string(bounds_.files_each) + " open files");
  }
  if (!gap.empty()) gap = "some users of the devices are unknown: " + gap;
  return result;
}

}  // namespace

Result<DeviceUsers> find_device_users(const FsRoot& root, const DeviceUserBounds& bounds) {
  if (!proc_counts_like_the_driver(root)) {
    return fail(ErrorCode::failed_precondition, "proc: of a container, not of the host");
  }
  TRY(check_rights(root));
  const auto end = std::chrono::steady_clock::now() + bounds.time;
  Search search(root, bounds);
  TRY(root.visit("proc", [&](std::string_view name) {
    const auto pid = number_of(name);
    if (!pid) return true;
    if (std::chrono::steady_clock::now() >= end) {
      search.stop("it took more than " + std::to_string(bounds.time.count()) + " ms, the rest was not examined");
      return false;
    }
    search.look_at(*pid);
    return true;
  }));
  return search.result();
}

}  // namespace neuron::host
