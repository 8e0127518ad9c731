#pragma once

#include <vector>

#include "agent/host/fs_root.h"
#include "agent/model/host_scan.h"
#include "agent/model/usage.h"

namespace neuron::host {

// Whether the numbers below the root's proc/ are those that the Neuron driver gives its processes (of the first pid
// namespace). Not so in a container without the host's pid namespace: there the same number is another process. Always
// so in a simulated or captured host. Any thread; blocks on file reads.
[[nodiscard]] bool proc_counts_like_the_driver(const FsRoot& root);

// One process by proc/<pid>/{cmdline,environ,stat,statm}; values that cannot be read, for lack of rights or because the
// process has ended, are empty. A file that is larger than 256 KiB is left out. Any thread; blocks on file reads.
[[nodiscard]] model::ProcessUsage read_process(const FsRoot& root, int pid);

// Numbers of the processes that the driver named, ascending, each once; at most kMaxProcesses.
[[nodiscard]] std::vector<int> process_ids(const model::HostScan& scan);
inline constexpr std::size_t kMaxProcesses = 1024;  // 64 devices with 16 each, the most the driver admits

}  // namespace neuron::host
