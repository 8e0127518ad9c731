#pragma once

#include <map>
#include <string>

#include "agent/host/fs_root.h"
#include "agent/model/host_scan.h"

namespace neuron::ls {

// Command line per process that the driver named: proc/<pid>/cmdline, arguments joined by spaces, made printable. A
// process without one (gone, a kernel thread, not readable) has no entry. Empty altogether where the root's proc does
// not count as the driver does (a container's own): the same number is another process there.
// Blocks on file reads.
[[nodiscard]] std::map<int, std::string> read_process_commands(const host::FsRoot& root, const model::HostScan& scan);

}  // namespace neuron::ls
