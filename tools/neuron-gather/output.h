#pragma once

#include <string>

#include "agent/base/result.h"
#include "tools/neuron-gather/capture.h"

namespace neuron::gather {

// Whether `path` is one that write_output makes an archive of: it ends in .tar.gz or .tgz, or is "-".
[[nodiscard]] bool names_archive(const std::string& path);

// Writes the capture to a new archive, to standard output as an archive ("-"), or into a directory that is new or
// empty. Errors: failed_precondition when the file is there already or the directory holds something; else as the
// kernel gives them, with what was written of an archive removed again. Blocks on writes.
[[nodiscard]] Result<void> write_output(const Capture& capture, const std::string& path);

}  // namespace neuron::gather
