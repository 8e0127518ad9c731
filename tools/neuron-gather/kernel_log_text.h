#pragma once

#include <string>

#include "agent/base/result.h"
#include "agent/host/fs_root.h"

namespace neuron::gather {

// Of the kernel log below `root` what it says of Neuron hardware, as a file of records
// (docs/fixtures.md#the-kernel-log): made anew from what was understood of each line, so that nothing else of the
// machine's log is in it, and neither are the host's name and the instance's id. At most the newest 4096 lines. Errors:
// as of host::KernelLog.
[[nodiscard]] Result<std::string> kernel_log_text(const host::FsRoot& root);

}  // namespace neuron::gather
