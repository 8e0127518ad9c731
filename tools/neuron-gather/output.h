#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "agent/base/result.h"
#include "tools/neuron-gather/capture.h"

namespace neuron::gather {

// The output that write_output has begun, to be removed when it cannot be finished. Passive data.
struct Unfinished {
  std::string path;           // "": nothing
  bool keeps_folder = false;  // `path` existed before, as an empty directory: only its content is removed
};

// Removes it, as far as possible. No error when it is gone already.
void discard(const Unfinished& unfinished) noexcept;

// Called before anything is created. When it returns false (the path is too long to record), nothing is created.
using Begin = std::function<bool(const Unfinished&)>;

// Whether write_output makes an archive at `path`: it ends in .tar.gz or .tgz, or is "-".
[[nodiscard]] bool names_archive(const std::string& path);

// Writes the capture to a new archive, below the one folder `top`, to standard output as an archive ("-"), or into a
// new or empty directory. A new output is written as "<path>.partial" and renamed when it is complete; an existing
// directory is filled in place. `begin` is called with which of both.
//
// Errors, after removing what was written: failed_precondition when the file exists, the directory is not empty, or a
// partial output exists (another run writes it, or was killed); unavailable when the reader of standard output is gone;
// else from errno, with a remedy. The caller must ignore SIGPIPE and SIGXFSZ. Blocks on writes.
[[nodiscard]] Result<void> write_output(const Capture& capture, const std::string& path, const Begin& begin,
                                        std::string_view top = "neuron-gather");

// The capture as a tar archive (ustar, pax headers where a name does not fit) below one folder `top`. The same capture
// always gives the same bytes: sorted by path, owner 0, modes 0755 and 0644, one fixed time. Pure.
[[nodiscard]] std::string tar_text(const Capture& capture, std::string_view top);

// Whether the tar.gz archive at `path` is as it was written, by its check sum and length; plain tar has none. A reader
// of archives does not look at them. Errors: data_corrupt, also with more than `most_bytes` of contents.
[[nodiscard]] Result<void> check_archive(const std::string& path, std::uint64_t most_bytes);

// gzip of `text`, without a time stamp. Pure. Errors: internal when zlib refuses.
[[nodiscard]] Result<std::string> gzip_text(std::string_view text);

}  // namespace neuron::gather
