#include "tools/neuron-sim/load_host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>

#include "agent/base/parse.h"
#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/host_directory.h"

namespace neuron::sim {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 10U;
constexpr const char* kFresh = ".neuron-sim/fresh-load";

// Mode of the plain file at `path`; nullopt for anything else.
std::optional<mode_t> mode_of(int directory, const std::string& path) {
  struct stat info {};
  if (::fstatat(directory, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  return info.st_mode & 07777U;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  return trim(text).find_first_not_of("0123456789") == std::string_view::npos ? parse_u64(text) : std::nullopt;
}

constexpr const char* kStat = "proc/stat";
constexpr const char* kMeminfo = "proc/meminfo";
constexpr std::uint64_t kUpTicks = std::uint64_t{3600} * kTicksPerSecond;

// "cpu" and CPUs alike: user nice system idle iowait irq softirq steal guest guest_nice.
std::string cpu_line(const std::string& name, std::uint64_t user, std::uint64_t system, std::uint64_t idle) {
  return fmt::format("{} {} 0 {} {} 0 0 0 0 0 0\n", name, user, system, idle);
}

std::string memory_line(std::string_view name, std::uint64_t kib) {
  return fmt::format("{:<15} {:>8} kB\n", name, kib);
}

std::uint64_t kib_of(const std::string& meminfo, std::string_view name) {
  for (const auto line : split(meminfo, '\n')) {
    if (!line.starts_with(name) || !line.ends_with(" kB")) continue;
    return parse_u64(line.substr(name.size(), line.size() - name.size() - 3)).value_or(0);
  }
  return 0;
}

constexpr const char* kRecord = ".neuron-sim/load-processes";
constexpr std::uint64_t kPage = 4096;

std::string name_of(const ProcessActivity& process) {
  constexpr std::size_t kMaxComm = 15;
  const std::string& program = process.arguments.front();
  return program.substr(program.rfind('/') + 1).substr(0, kMaxComm);
}

std::string staging(int pid) {
  return ".neuron-sim/process-" + std::to_string(pid);
}

std::string place(int pid) {
  return "proc/" + std::to_string(pid);
}

std::string joined_with_nul(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text.append(word).push_back('\0');
  return text;
}

}  // namespace

Result<LoadFiles> LoadFiles::open(const std::string& dir) {
  TRY(require_simulated(dir));
  Fd handle(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!handle.valid()) return fail(error_from_errno(errno, dir));
  return LoadFiles(dir, std::move(handle));
}

void LoadFiles::note(int os_errno, const std::string& path) {
  if (state_) state_ = fail(error_from_errno(os_errno, dir_ + "/" + path));
}

std::optional<LoadFiles::Plain> LoadFiles::read_plain(const std::string& path) const {
  // O_NONBLOCK: opening a FIFO that `set` put there must not wait.
  const Fd fd(::openat(handle_.get(), path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (info.st_size < 0 || static_cast<std::size_t>(info.st_size) > kMaxBytes) return std::nullopt;
  Plain plain{std::string(static_cast<std::size_t>(info.st_size), '\0'), info.st_mode & 07777U};
  const ssize_t count = ::read(fd.get(), plain.text.data(), plain.text.size());
  if (count < 0 || static_cast<std::size_t>(count) != plain.text.size()) return std::nullopt;
  return plain;
}

std::optional<std::string> LoadFiles::read(const std::string& path) const {
  auto plain = read_plain(path);
  if (!plain) return std::nullopt;
  return std::move(plain->text);
}

void LoadFiles::write(const std::string& path, std::string_view text, mode_t mode) {
  const Fd fd(::openat(handle_.get(), kFresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return note(errno, kFresh);
  const ssize_t count = ::write(fd.get(), text.data(), text.size());
  if (count < 0) return note(errno, kFresh);
  if (static_cast<std::size_t>(count) != text.size()) return note(ENOSPC, kFresh);
  if (::fchmod(fd.get(), mode) != 0) return note(errno, kFresh);
  if (::renameat(handle_.get(), kFresh, handle_.get(), path.c_str()) == 0) return;
  // Its folder was taken away by `set` a moment ago, or a folder stands in its place.
  if (errno != ENOENT && errno != ENOTDIR && errno != EISDIR) note(errno, path);
}

void LoadFiles::replace(const std::string& path, std::string_view text) {
  if (!state_) return;
  if (const auto mode = mode_of(handle_.get(), path)) write(path, text, *mode);
}

void LoadFiles::create(const std::string& path, std::string_view text, mode_t mode) {
  if (!state_) return;
  struct stat info {};
  const bool nothing = ::fstatat(handle_.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
  if (nothing) write(path, text, mode);
}

void LoadFiles::change(const std::string& path, const std::function<std::uint64_t(std::uint64_t)>& changed) {
  const auto old = state_ ? read_plain(path) : std::nullopt;
  const auto number = old ? number_in(old->text) : std::nullopt;
  if (number && changed(*number) != *number) write(path, std::to_string(changed(*number)) + "\n", old->mode);
}

void LoadFiles::add(const std::string& path, std::uint64_t growth) {
  if (growth > 0) change(path, [growth](std::uint64_t old) { return old + growth; });
}

void LoadFiles::set(const std::string& path, std::uint64_t value) {
  change(path, [value](std::uint64_t) { return value; });
}

void LoadFiles::make_folder(const std::string& path) {
  if (!state_) return;
  if (::mkdirat(handle_.get(), path.c_str(), 0755) != 0 && errno != EEXIST) note(errno, path);
}

void LoadFiles::make_link(const std::string& path, const std::string& target) {
  if (!state_) return;
  if (::symlinkat(target.c_str(), handle_.get(), path.c_str()) != 0 && errno != EEXIST) note(errno, path);
}

void LoadFiles::move(const std::string& from, const std::string& to) {
  if (!state_) return;
  if (::renameat(handle_.get(), from.c_str(), handle_.get(), to.c_str()) != 0 && errno != ENOENT) note(errno, from);
}

void LoadFiles::remove_folder(const std::string& path) {
  if (!state_) return;
  std::error_code error;
  std::filesystem::remove_all(dir_ + "/" + path, error);
  if (error) note(error.value(), path);
}

LoadPlatform::LoadPlatform(LoadFiles& files, int cpus) : files_(files), cpus_(cpus) {
  idle_ticks_ = kUpTicks * static_cast<std::uint64_t>(cpus_);
  const auto text = files_.read(kStat);
  if (!text) return;
  const auto words = split(std::string_view(*text).substr(0, text->find('\n')), ' ');
  const auto number = [&](std::size_t i) { return i < words.size() ? parse_u64(words[i]).value_or(0) : 0; };
  std::size_t first = 1;
  while (first < words.size() && words[first].empty()) ++first;  // two blanks follow "cpu"
  user_ticks_ = number(first) + number(first + 1);
  system_ticks_ = number(first + 2);
  idle_ticks_ = number(first + 3);
}

std::uint64_t LoadPlatform::uptime_ticks() const {
  return (user_ticks_ + system_ticks_ + idle_ticks_) / static_cast<std::uint64_t>(cpus_);
}

void LoadPlatform::write(const Activity& activity) {
  user_ticks_ += activity.user_ticks;
  system_ticks_ += activity.system_ticks;
  idle_ticks_ += activity.idle_ticks;
  std::string text = cpu_line("cpu ", user_ticks_, system_ticks_, idle_ticks_);
  const auto cpus = static_cast<std::uint64_t>(cpus_);
  for (int cpu = 0; cpu < cpus_; ++cpu) {
    text += cpu_line("cpu" + std::to_string(cpu), user_ticks_ / cpus, system_ticks_ / cpus, idle_ticks_ / cpus);
  }
  text += "intr 0\nctxt 0\nbtime 1789170000\nprocesses 1\nprocs_running 1\nprocs_blocked 0\n";
  files_.create(kStat, text);
  files_.replace(kStat, text);
  if (const auto meminfo = files_.read(kMeminfo)) {
    const std::string fresh = with_memory_used(*meminfo, activity.host_bytes);
    if (fresh != *meminfo) files_.replace(kMeminfo, fresh);
  }
}

std::string with_memory_used(const std::string& meminfo, std::uint64_t used_bytes) {
  constexpr std::array<std::string_view, 4> kReplaced = {"MemFree:", "MemAvailable:", "SwapTotal:", "SwapFree:"};
  const std::uint64_t total = kib_of(meminfo, "MemTotal:");
  const std::uint64_t available = total - std::min(total, used_bytes / 1024);
  std::string text;
  bool replaced = false;
  const auto put = [&] {
    text += memory_line("MemFree:", available - available / 8) + memory_line("MemAvailable:", available);
    text += memory_line("SwapTotal:", 0) + memory_line("SwapFree:", 0);
    replaced = true;
  };
  for (const auto line : split(trim(meminfo), '\n')) {
    if (std::ranges::none_of(kReplaced, [&](auto name) { return line.starts_with(name); }))
      text.append(line).append("\n");
    if (line.starts_with("MemTotal:") && !replaced) put();
  }
  return text;
}

std::string process_stat(const ProcessActivity& process, std::uint64_t first_tick) {
  std::string text = fmt::format(
      "{0} ({1}) S 1 {0} {0} 0 -1 4194304 9731 0 12 0 {2} {3} 0 0 20 0 64 0 {4} {5} {6} 18446744073709551615",
      process.pid, name_of(process), process.user_ticks, process.system_ticks, first_tick + process.start_ticks,
      process.resident_bytes * 3, process.resident_bytes / kPage);
  constexpr int kWritten = 25;
  constexpr int kFields = 52;
  for (int field = kWritten; field < kFields; ++field) text += " 0";
  return text + "\n";
}

std::string process_statm(const ProcessActivity& process) {
  const std::uint64_t pages = process.resident_bytes / kPage;
  return fmt::format("{} {} {} 1024 0 {} 0\n", pages * 3, pages, pages / 8, pages * 2);
}

void LoadProcesses::forget_earlier_load() {
  const auto record = files_.read(kRecord);
  if (!record) return;
  for (const auto line : split(*record, '\n')) {
    if (const auto pid = parse_int(line, 1, 1 << 22)) go(*pid);
  }
}

void LoadProcesses::remember() {
  std::string text;
  for (const auto& [pid, process] : shown_) text += std::to_string(pid) + "\n";
  files_.create(kRecord, "", 0644);
  files_.replace(kRecord, text);
}

void LoadProcesses::appear(const ProcessActivity& process) {
  const std::string folder = staging(process.pid);
  files_.remove_folder(folder);
  files_.make_folder(folder);
  files_.make_folder(folder + "/fd");
  files_.make_folder(folder + "/fdinfo");
  files_.create(folder + "/cmdline", joined_with_nul(process.arguments));
  files_.create(folder + "/comm", name_of(process) + "\n");
  std::vector<std::string> environment = {"PATH=/opt/venv/bin:/usr/bin:/bin", "HOME=/root", "NEURON_RT_LOG_LEVEL=WARN"};
  if (!process.tag.empty()) environment.push_back("NEURON_PROCESS_TAG=" + process.tag);
  files_.create(folder + "/environ", joined_with_nul(environment), 0400);
  files_.create(folder + "/stat", process_stat(process, first_tick_));
  files_.create(folder + "/statm", process_statm(process));
  int number = 3;
  for (const int device : process.devices) {
    const std::string name = std::to_string(number++);
    files_.make_link(folder + "/fd/" + name, "/dev/neuron" + std::to_string(device));
    files_.create(folder + "/fdinfo/" + name, "pos:\t0\nflags:\t02100002\nmnt_id:\t25\nino:\t1073\n");
  }
  files_.remove_folder(place(process.pid));
  files_.move(folder, place(process.pid));
}

void LoadProcesses::go(int pid) {
  files_.move(place(pid), staging(pid));
  files_.remove_folder(staging(pid));
}

void LoadProcesses::write_answers(const DeviceActivity& device) {
  const auto known = answered_.find(device.index);
  if (known != answered_.end() && known->second == device.processes) return;
  const std::string path = "neuron-ioctl/neuron" + std::to_string(device.index) + ".json";
  const auto old = files_.read(path);
  if (!old) return;
  std::string list;
  for (const ProcessShare& share : device.processes) {
    list += fmt::format("{}{}:{}:{}:{}", list.empty() ? "" : ",", share.pid, share.core_mask, share.host_bytes,
                        share.device_bytes);
  }
  const auto text = with_processes(*old, list);
  if (!text) return;  // `set` broke the answers
  files_.replace(path, *text);
  answered_[device.index] = device.processes;
}

void LoadProcesses::write(const Activity& activity) {
  if (!began_) forget_earlier_load();
  const bool changed = !began_;
  began_ = true;
  std::set<int> alive;
  std::vector<int> fresh;
  for (const ProcessActivity& process : activity.processes) {
    alive.insert(process.pid);
    if (!shown_.contains(process.pid)) fresh.push_back(process.pid);
    shown_[process.pid] = process;
  }
  // The record first: extra entries are harmless, a missing one would leave its process behind.
  if (changed || !fresh.empty()) remember();
  if (changed) {  // a reader of its files may read those of every process
    files_.make_folder("proc/1");
    files_.make_folder("proc/1/fd");
  }
  for (const int pid : fresh) appear(shown_[pid]);
  for (const ProcessActivity& process : activity.processes) {
    files_.replace(place(process.pid) + "/stat", process_stat(process, first_tick_));
    files_.replace(place(process.pid) + "/statm", process_statm(process));
  }
  for (const DeviceActivity& device : activity.devices) write_answers(device);
  std::erase_if(shown_, [&](const auto& entry) {
    if (alive.contains(entry.first)) return false;
    go(entry.first);
    return true;
  });
}

}  // namespace neuron::sim
