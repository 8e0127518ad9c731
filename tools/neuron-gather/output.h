#pragma once

#include <functional>
#include <string>

#include "agent/base/result.h"
#include "tools/neuron-gather/capture.h"
#include "tools/neuron-gather/unfinished.h"

namespace neuron::gather {

// Called just before the first thing is made. When it returns false (nobody could remember it), nothing is made.
using Begin = std::function<bool(const Unfinished&)>;

// Whether `path` is one that write_output makes an archive of: it ends in .tar.gz or .tgz, or is "-".
[[nodiscard]] bool names_archive(const std::string& path);

// Writes the capture to a new archive, to standard output as an archive ("-"), or into a directory that is new or
// empty. What is new is written as "<path>.partial" beside its place and renamed when it is whole, so that a part never
// has the name; a directory that is there already is filled where it is. `begin` learns which of both.
//
// Errors, with what was written removed again: failed_precondition when the file is there already or the directory
// holds something, or a partial one is there (another run makes it, or was killed by force); unavailable when the
// reader of standard output is gone; else as the kernel gives them, with what to do. SIGPIPE and SIGXFSZ must be
// ignored by the caller. Blocks on writes.
[[nodiscard]] Result<void> write_output(const Capture& capture, const std::string& path, const Begin& begin);

}  // namespace neuron::gather
