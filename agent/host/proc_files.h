#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/host/fs_root.h"
#include "agent/model/usage.h"

// CPUs, memory and processes by proc/ of a machine. Parsers are pure functions over foreign input: bounded, no I/O, any
// thread; nullopt for malformed and for missing values.
namespace neuron::host {

// Most bytes of command lines and tags, and most counted CPUs of a proc/stat.
inline constexpr std::size_t kMaxProcessText = 255;
inline constexpr int kMaxCpus = 8192;

struct CpuTimes {
  model::CpuTicks ticks;
  int cpu_count = 0;  // lines cpu<N>
  friend bool operator==(const CpuTimes&, const CpuTimes&) = default;
};
// proc/stat: the line "cpu" with at least user, nice, system and idle; later fields count as 0 where a kernel lacks
// them.
[[nodiscard]] std::optional<CpuTimes> parse_cpu_times(std::string_view text);

// proc/meminfo, whose kB are KiB. nullopt without MemTotal and MemAvailable.
[[nodiscard]] std::optional<model::HostMemoryUsage> parse_memory(std::string_view text);

struct ProcessTimes {
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t start_ticks = 0;
  friend bool operator==(const ProcessTimes&, const ProcessTimes&) = default;
};
// proc/<pid>/stat. The name in its second field may hold blanks and parentheses, so fields count from the last ")".
[[nodiscard]] std::optional<ProcessTimes> parse_process_times(std::string_view text);

// proc/<pid>/statm: resident bytes.
[[nodiscard]] std::optional<std::uint64_t> parse_resident(std::string_view text, std::uint64_t page_bytes);

// proc/<pid>/cmdline for display: arguments joined by blanks, printable, cut to kMaxProcessText; "" = none.
[[nodiscard]] std::string parse_command(std::string_view text);

// NEURON_PROCESS_TAG of proc/<pid>/environ, printable and cut as above; nullopt when not set or empty. No other
// variable leaves this function.
[[nodiscard]] std::optional<std::string> parse_tag(std::string_view environment);

// Whether pids below the root's proc/ are those that the Neuron driver gives its processes (of the first pid
// namespace): false in a container without the host's pid namespace, where the same number is another process; true in
// a simulated or captured host. Any thread; blocks on file reads.
[[nodiscard]] bool proc_counts_like_the_driver(const FsRoot& root);

// One process from proc/<pid>/{cmdline,environ,stat,statm}; values are empty when unreadable, for lack of rights or
// because the process has ended, and for a file larger than 256 KiB. Any thread; blocks on file reads.
[[nodiscard]] model::ProcessUsage read_process(const FsRoot& root, int pid);

// A process that has a Neuron device open in a way that attaches it (docs/reference/driver.md#opening-a-device): for
// reading, or for reading and writing; not for writing only, as this program does. Passive data.
struct DeviceUser {
  int device = 0;  // N of neuron<N>
  int pid = 0;     // as the root's proc/ counts
  int file = 0;    // its lowest descriptor of the device
  friend auto operator<=>(const DeviceUser&, const DeviceUser&) = default;
};

struct DeviceUsers {
  std::vector<DeviceUser> users;  // by device, then pid; one entry for each pair
  std::string gap;                // why there may be more; "" = all processes were examined
  friend bool operator==(const DeviceUsers&, const DeviceUsers&) = default;
};

// Bounds of one search; beyond them there is a gap. A thousand processes with forty files each take about 150 ms.
struct DeviceUserBounds {
  std::size_t files_each = 1024;         // the lowest descriptors of each process
  std::chrono::milliseconds time{2000};  // checked between two processes
};

// The users of devices from proc/<pid>/fd and fdinfo: without the driver, hence without attaching; neither cores nor
// memory are known. A forked child that inherited the file counts; a process that closed it and keeps only a mapping is
// not found. Processes that end meanwhile are no error.
//
// The device is N of the link's text dev/neuron<N>, " (deleted)" or not. On a live machine whose proc/devices has the
// driver it must be a character device of that driver, and N is its minor number, since a container may choose the
// name.
//
// Errors: failed_precondition (proc/ is of a container: its pids are not the host's); permission_denied, not_found (the
// links of pid 1 are not readable or not shown: then few other processes are visible). Any thread; blocks on reads of
// proc/ only, never in the driver.
[[nodiscard]] Result<DeviceUsers> find_device_users(const FsRoot& root, const DeviceUserBounds& bounds = {});

}  // namespace neuron::host
