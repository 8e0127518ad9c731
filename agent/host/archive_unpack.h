#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/base/result.h"

namespace neuron::host {

// Bounds of an archive. A captured trn2.48xlarge has some 30,000 entries and 1 MiB of contents.
struct ArchiveBounds {
  std::size_t entries = 200'000;
  std::uint64_t total_bytes = std::uint64_t{256} << 20U;  // contents, names and link targets together
  std::uint64_t file_bytes = std::uint64_t{16} << 20U;    // one file
  std::size_t path_bytes = 1024;
  std::size_t depth = 48;  // components of a path
};

// Unpacks a tar archive, plain or gzip by its content, open for reading at `archive`, into the empty directory open at
// `directory`. `name` is the archive's, for messages. No other process may write into the directory meanwhile.
//
// An archive is foreign input. It is refused, and the caller removes the files written so far, when it is incomplete,
// exceeds a bound, holds an absolute path or "..", names a file twice, or holds a link that leads out of it. Links keep
// their meaning: one whose target is absolute starts at the archive's root and is stored as a relative one. Links are
// made last, so that nothing is ever written through one. Device nodes become empty files, whose presence the readers
// check; FIFOs and sockets are left out. Owners, modes and times are ignored: files are 0600, folders 0700.
//
// Returns the path of the archive's root below the directory: "", or the name of the one folder at the top that holds
// everything, unless that is sys, proc, dev, opt or neuron-ioctl. Errors: data_corrupt for all of the above and for a
// file that is no archive; internal when writing failed. Blocks on files.
[[nodiscard]] Result<std::string> unpack_archive(int archive, const std::string& name, int directory,
                                                 const ArchiveBounds& bounds);

}  // namespace neuron::host
