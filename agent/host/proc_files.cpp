#include "agent/host/proc_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <map>
#include <utility>

#include "agent/base/parse.h"
#include "agent/host/attributes.h"

namespace neuron::host {
namespace {

// Words between blanks and tabs, at most `most`.
std::vector<std::string_view> words_of(std::string_view text, std::size_t most) {
  constexpr std::string_view kBlanks = " \t\n";
  std::vector<std::string_view> words;
  while (words.size() < most) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (text.empty()) break;
    words.push_back(text.substr(0, text.find_first_of(kBlanks)));
    text.remove_prefix(words.back().size());
  }
  return words;
}

std::optional<std::uint64_t> number_of(std::string_view word) {
  return is_digits(word) ? parse_u64(word) : std::nullopt;
}

// The sum, or nullopt when one is missing or it overflows.
std::optional<std::uint64_t> sum(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  std::uint64_t total = 0;
  return a && b && !__builtin_add_overflow(*a, *b, &total) ? std::optional(total) : std::nullopt;
}

std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t total = 0;
  return !__builtin_mul_overflow(a, b, &total) ? std::optional(total) : std::nullopt;
}

// The line "cpu": user nice system idle iowait irq softirq steal guest guest_nice. Guest time is part of user already.
std::optional<model::CpuTicks> parse_cpu_line(std::string_view line) {
  std::array<std::uint64_t, 8> fields{};
  constexpr std::size_t kLeast = 4;
  const auto words = words_of(line, 1 + fields.size());
  if (words.size() < 1 + kLeast) return std::nullopt;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto number = number_of(words[i]);
    if (!number) return std::nullopt;
    fields[i - 1] = *number;
  }
  const auto user = sum(fields[0], fields[1]);
  const auto system = sum(fields[2], sum(fields[5], fields[6]));
  const auto idle = sum(fields[3], fields[4]);
  if (!user || !system || !idle) return std::nullopt;
  return model::CpuTicks{*user, *system, *idle, fields[7]};
}

// "MemTotal:       16252928 kB" → bytes, when the line has that name.
std::optional<std::uint64_t> kib_line(std::string_view line, std::string_view name) {
  if (take_until(line, ':') != name) return std::nullopt;
  const auto words = words_of(line, 3);
  const auto kib = words.size() == 2 && words[1] == "kB" ? number_of(words[0]) : std::nullopt;
  return kib ? product(*kib, 1024) : std::nullopt;
}

std::optional<std::string> process_text(std::string_view text) {
  text = trim(text.substr(0, 2 * kMaxProcessText));
  std::string shown = printable(text, kMaxProcessText);
  // A cut text may be longer by one escape and "...".
  if (shown.size() > kMaxProcessText) shown = printable(text, kMaxProcessText - 6);
  if (shown.empty()) return std::nullopt;
  return shown;
}

// Unknown on a captured host; all types with Neuron devices so far have pages of 4 KiB.
std::uint64_t page_bytes(const FsRoot& root) {
  constexpr long kUsual = 4096;
  const long live = root.is_live() ? ::sysconf(_SC_PAGESIZE) : kUsual;
  return static_cast<std::uint64_t>(live > 0 ? live : kUsual);
}

// A directory entry that is a number: a process, or one of its files.
std::optional<int> entry_number(std::string_view name) {
  constexpr int kMaxNumber = 1 << 30;
  return is_digits(name) ? parse_int(name, 0, kMaxNumber) : std::nullopt;
}

// N of ".../dev/neuron<N>", where "..." is only the way to the root: links are absolute on a live machine and relative
// in a capture. The kernel adds " (deleted)" when the name is removed and the file still open.
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

// The driver's major number: the line "<number> neuron" in proc/devices, before the block devices.
std::optional<unsigned> driver_major(const FsRoot& root) {
  constexpr std::size_t kMaxBytes = std::size_t{64} << 10U;
  const auto text = root.read_file("proc/devices", kMaxBytes);
  if (!text) return std::nullopt;
  for (std::string_view line : split(*text, '\n')) {
    if (line == "Block devices:") break;
    const auto number = parse_int(take_until(line, ' '), 0, 4095);
    if (number && line == "neuron") return static_cast<unsigned>(*number);
  }
  return std::nullopt;
}

// N of an open file on a live machine. AT_STATX_DONT_SYNC: a file system, such as a container's, is not asked.
std::optional<int> opened_device(const FsRoot& file_folder, int file, unsigned major) {
  const std::string path = file_folder.path() + '/' + std::to_string(file);
  struct statx info {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &info) != 0) return std::nullopt;
  if (!S_ISCHR(info.stx_mode) || info.stx_rdev_major != major || info.stx_rdev_minor >= kMaxDevices)
    return std::nullopt;
  return static_cast<int>(info.stx_rdev_minor);
}

enum class Access { attached, other, refused };

// From "flags:" of proc/<pid>/fdinfo/<file>, octal as in open(2). `other` for a file that was closed meanwhile.
Access access_of(const FsRoot& root, int pid, int file) {
  constexpr std::string_view kKey = "flags:";
  const auto text = root.read_attribute("proc/" + std::to_string(pid) + "/fdinfo/" + std::to_string(file));
  if (!text) return text.error().code == ErrorCode::permission_denied ? Access::refused : Access::other;
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.starts_with(kKey)) continue;
    const std::string_view digits = trim(line.substr(kKey.size()));
    if (digits.empty() || digits.find_first_not_of("01234567") != std::string_view::npos) return Access::other;
    unsigned flags = 0;
    for (const char digit : digits) flags = flags << 3U | static_cast<unsigned>(digit - '0');
    const unsigned mode = flags & O_ACCMODE;
    return (flags & O_PATH) == 0 && (mode == O_RDONLY || mode == O_RDWR) ? Access::attached : Access::other;
  }
  return Access::other;
}

// A process that may read the links of pid 1 may read all links. Listing them proves nothing: root without
// CAP_SYS_PTRACE can do that.
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

  void examine(int pid);
  [[nodiscard]] DeviceUsers result(const std::string& stopped) const;

 private:
  [[nodiscard]] bool examine_file(int pid, const FsRoot& file_folder, int file);
  void note_failure(const Error& error) {
    const bool has_ended = error.code == ErrorCode::not_found || error.os_errno == ESRCH;
    if (!has_ended) ++refused_;
  }

  const FsRoot& root_;
  const DeviceUserBounds& bounds_;
  std::optional<unsigned> major_;
  std::map<std::pair<int, int>, int> users_;  // device, pid -> file
  std::size_t refused_ = 0;                   // processes
  std::size_t crowded_ = 0;                   // processes with more files than the bound
};

// False when the other files of the process are not accessible either.
bool Search::examine_file(int pid, const FsRoot& file_folder, int file) {
  const auto target = file_folder.read_link(std::to_string(file));
  if (!target) return target.error().code != ErrorCode::permission_denied;
  auto device = named_device(*target);
  if (device && major_) device = opened_device(file_folder, file, *major_);
  if (!device || users_.contains({*device, pid})) return true;
  const Access access = access_of(root_, pid, file);
  if (access == Access::attached) users_.emplace(std::pair(*device, pid), file);
  return access != Access::refused;
}

void Search::examine(int pid) {
  const std::string path = "proc/" + std::to_string(pid) + "/fd";
  std::vector<int> files;
  const auto seen = root_.visit(path, [&files](std::string_view name) {
    if (const auto file = entry_number(name)) files.push_back(*file);
    return true;
  });
  if (!seen) return note_failure(seen.error());
  if (files.empty()) return;
  std::ranges::sort(files);
  if (files.size() > bounds_.files_each) {
    files.resize(bounds_.files_each);
    ++crowded_;
  }
  const auto folder = root_.subdirectory(path);
  if (!folder) return note_failure(folder.error());
  if (!std::ranges::all_of(files, [&](int file) { return examine_file(pid, *folder, file); })) ++refused_;
}

DeviceUsers Search::result(const std::string& stopped) const {
  DeviceUsers result;
  for (const auto& [place, file] : users_) result.users.push_back({place.first, place.second, file});
  const auto processes = [](std::size_t number) {
    return std::to_string(number) + (number == 1 ? " process" : " processes");
  };
  std::string& gap = result.gap;
  const auto add = [&gap](const std::string& reason) { gap += (gap.empty() ? "" : ", ") + reason; };
  if (!stopped.empty()) add(stopped);
  if (refused_ > 0) add(processes(refused_) + " not accessible");
  if (crowded_ > 0) {
    add(processes(crowded_) + " with more than " + std::to_string(bounds_.files_each) + " open files");
  }
  if (!gap.empty()) gap = "some users of the devices are unknown: " + gap;
  return result;
}

}  // namespace

std::optional<CpuTimes> parse_cpu_times(std::string_view text) {
  std::optional<model::CpuTicks> ticks;
  int count = 0;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    if (!line.starts_with("cpu")) {
      if (ticks) break;  // the lines of the CPUs stand together at the top
      continue;
    }
    const std::string_view name = line.substr(0, line.find_first_of(" \t"));
    if (name == "cpu") {
      if (ticks || !(ticks = parse_cpu_line(line))) return std::nullopt;
    } else if (is_digits(name.substr(3)) && count < kMaxCpus) {
      ++count;
    }
  }
  if (!ticks) return std::nullopt;
  return CpuTimes{*ticks, count};
}

std::optional<model::HostMemoryUsage> parse_memory(std::string_view text) {
  std::optional<std::uint64_t> total;
  std::optional<std::uint64_t> available;
  model::HostMemoryUsage memory;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    if (const auto bytes = kib_line(line, "MemTotal")) total = bytes;
    if (const auto bytes = kib_line(line, "MemAvailable")) available = bytes;
    if (const auto bytes = kib_line(line, "SwapTotal")) memory.swap_total_bytes = bytes;
    if (const auto bytes = kib_line(line, "SwapFree")) memory.swap_free_bytes = bytes;
  }
  if (!total || !available || *available > *total) return std::nullopt;
  memory.total_bytes = *total;
  memory.available_bytes = *available;
  return memory;
}

std::optional<ProcessTimes> parse_process_times(std::string_view text) {
  constexpr std::size_t kFirst = 3;  // field after the name
  constexpr std::size_t kStart = 22;
  const auto name_end = text.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  const auto fields = words_of(text.substr(name_end + 1), kStart - kFirst + 1);
  if (fields.size() < kStart - kFirst + 1) return std::nullopt;
  const auto user = number_of(fields[14 - kFirst]);
  const auto system = number_of(fields[15 - kFirst]);
  const auto start = number_of(fields[kStart - kFirst]);
  if (!user || !system || !start) return std::nullopt;
  return ProcessTimes{*user, *system, *start};
}

std::optional<std::uint64_t> parse_resident(std::string_view text, std::uint64_t page_bytes) {
  const auto words = words_of(text, 2);
  const auto pages = words.size() == 2 && number_of(words[0]) ? number_of(words[1]) : std::nullopt;
  return pages ? product(*pages, page_bytes) : std::nullopt;
}

std::string parse_command(std::string_view text) {
  std::string words(text.substr(0, 2 * kMaxProcessText));
  std::ranges::replace(words, '\0', ' ');
  return process_text(words).value_or("");
}

std::optional<std::string> parse_tag(std::string_view environment) {
  constexpr std::string_view kName = "NEURON_PROCESS_TAG=";
  while (!environment.empty()) {
    const std::string_view variable = take_until(environment, '\0');
    if (variable.starts_with(kName)) return process_text(variable.substr(kName.size()));
  }
  return std::nullopt;
}

bool proc_counts_like_the_driver(const FsRoot& root) {
  // Inode of the first pid namespace, fixed in the kernel (include/linux/proc_ns.h, PROC_PID_INIT_INO).
  constexpr std::string_view kInitPidNamespace = "pid:[4026531836]";
  const auto name_space = root.read_link("proc/self/ns/pid");
  if (!name_space || *name_space == kInitPidNamespace) return true;
  // Pid 2 of the first namespace is always kthreadd, also in a host's proc mounted into a container.
  const auto second = root.read_attribute("proc/2/comm");
  return second && *second == "kthreadd";
}

model::ProcessUsage read_process(const FsRoot& root, int pid) {
  constexpr std::size_t kMaxBytes = std::size_t{256} << 10U;
  model::ProcessUsage process;
  process.pid = pid;
  const auto folder = root.subdirectory("proc/" + std::to_string(pid));
  if (!folder) return process;
  if (const auto text = folder->read_file("cmdline", kMaxBytes)) process.command = parse_command(*text);
  if (const auto text = folder->read_file("environ", kMaxBytes)) process.tag = parse_tag(*text);
  if (const auto text = folder->read_attribute("stat")) {
    if (const auto times = parse_process_times(*text)) {
      process.user_ticks = times->user_ticks;
      process.system_ticks = times->system_ticks;
      process.start_ticks = times->start_ticks;
    }
  }
  if (const auto text = folder->read_attribute("statm"))
    process.resident_bytes = parse_resident(*text, page_bytes(root));
  return process;
}

Result<DeviceUsers> find_device_users(const FsRoot& root, const DeviceUserBounds& bounds) {
  if (!proc_counts_like_the_driver(root)) {
    return fail(ErrorCode::failed_precondition, "proc: of a container, not of the host");
  }
  TRY(check_rights(root));
  const auto end = std::chrono::steady_clock::now() + bounds.time;
  Search search(root, bounds);
  std::string stopped;
  TRY(root.visit("proc", [&](std::string_view name) {
    const auto pid = entry_number(name);
    if (!pid) return true;
    if (std::chrono::steady_clock::now() >= end) {
      stopped = "it took more than " + std::to_string(bounds.time.count()) + " ms, the rest was not examined";
      return false;
    }
    search.examine(*pid);
    return true;
  }));
  return search.result(stopped);
}

}  // namespace neuron::host
