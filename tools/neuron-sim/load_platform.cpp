#include "tools/neuron-sim/load_platform.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

constexpr const char* kStat = "proc/stat";
constexpr const char* kMeminfo = "proc/meminfo";
constexpr std::uint64_t kUpTicks = std::uint64_t{3600} * kTicksPerSecond;

// "cpu" and CPUs alike: user nice system idle iowait irq softirq steal guest guest_nice.
std::string cpu_line(const std::string& name, std::uint64_t user, std::uint64_t system, std::uint64_t idle) {
  return name + " " + std::to_string(user) + " 0 " + std::to_string(system) + " " + std::to_string(idle) +
         " 0 0 0 0 0 0\n";
}

std::string memory_line(std::string_view name, std::uint64_t kib) {
  std::array<char, 64> line{};
  std::snprintf(line.data(), line.size(), "%-15s %8llu kB\n", (std::string(name) + ":").c_str(),
                static_cast<unsigned long long>(kib));
  return line.data();
}

std::uint64_t kib_of(const std::string& meminfo, std::string_view name) {
  for (const auto line : split(meminfo, '\n')) {
    if (!line.starts_with(name) || !line.ends_with(" kB")) continue;
    return parse_u64(line.substr(name.size(), line.size() - name.size() - 3)).value_or(0);
  }
  return 0;
}

}  // namespace

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
    text += memory_line("MemFree", available - available / 8) + memory_line("MemAvailable", available);
    text += memory_line("SwapTotal", 0) + memory_line("SwapFree", 0);
    replaced = true;
  };
  for (const auto line : split(trim(meminfo), '\n')) {
    const bool skip =
        std::any_of(kReplaced.begin(), kReplaced.end(), [&](auto name) { return line.starts_with(name); });
    if (!skip) text.append(line).append("\n");
    if (line.starts_with("MemTotal:") && !replaced) put();
  }
  return text;
}

}  // namespace neuron::sim
