#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "agent/base/result.h"
#include "agent/host/temporary_directory.h"

namespace neuron::host {

// Most contents of an archive. A captured trn2.48xlarge has some 30,000 entries and 1 MiB of contents.
struct ArchiveBounds {
  std::size_t entries = 200'000;
  std::uint64_t total_bytes = std::uint64_t{256} << 20U;  // contents, names and link targets together
  std::uint64_t file_bytes = std::uint64_t{16} << 20U;    // one file
  std::size_t path_bytes = 1024;
  std::size_t depth = 48;  // components of a path
};

// A program's --root: a directory, used as it is, or a tar archive, plain or gzip by its content, unpacked into a
// TemporaryDirectory, which is removed with the object or the process: below $TMPDIR if set, else /dev/shm if it has
// the room, else /tmp. Hand directory() to FsRoot::open, and keep the object as long as that is used.
//
// If one folder ("node-17/sys/…") other than sys, proc, dev, opt and neuron-ioctl contains the whole archive, that
// folder is the root. An archive is foreign input. It is refused when it is incomplete, exceeds a bound, holds an
// absolute path or "..", names a file twice, or holds a link that leads out of it. An absolute link starts at the
// archive's root and becomes relative. Links are made last, so that nothing is written through one. Device nodes become
// empty files, which is enough for the readers; FIFOs and sockets are left out. Owners, modes and times are ignored:
// files are 0600, folders 0700.
// Movable. open() blocks on files; any thread.
class RootSource {
 public:
  // Errors: not_found, permission_denied; data_corrupt (no archive, or a refused one; the message names archive, entry
  // and reason); internal (the temporary directory could not be made or written).
  [[nodiscard]] static Result<RootSource> open(const std::string& argument, const ArchiveBounds& bounds = {});

  // The argument itself, or the root of the unpacked archive.
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  explicit RootSource(std::string directory) : directory_(std::move(directory)) {}

  std::string directory_;
  std::unique_ptr<TemporaryDirectory> temporary_;  // of an archive
};

}  // namespace neuron::host
