#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "agent/base/result.h"
#include "agent/host/archive_unpack.h"
#include "agent/host/temporary_directory.h"

namespace neuron::host {

// The target of a program's --root: a directory, used as it is, or an archive (see unpack_archive), unpacked into a
// TemporaryDirectory, which is gone when the object or the process is: below $TMPDIR if set, else /dev/shm if it has
// the room, else /tmp. Hand directory() to FsRoot::open, and keep the object for as long as that is used. When
// everything in the archive lies below one folder with a name of its own ("node-17/sys/…"), that folder is the root.
//
// Movable. open() blocks on files; any thread.
class RootSource {
 public:
  // Errors: not_found, permission_denied; data_corrupt (no archive, or one that is refused; the message names archive,
  // entry and reason); internal (the temporary directory could not be made or written).
  [[nodiscard]] static Result<RootSource> open(const std::string& argument, const ArchiveBounds& bounds = {});

  // The argument itself, or where the archive was unpacked.
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  explicit RootSource(std::string directory) : directory_(std::move(directory)) {}

  std::string directory_;
  std::optional<TemporaryDirectory> temporary_;  // none for a directory that was given
};

// Where many small files are best kept for a short time: $TMPDIR if set, else /dev/shm if `bytes` and `entries` fit in
// there, else /tmp.
[[nodiscard]] std::string temporary_place(std::uint64_t bytes, std::uint64_t entries);

}  // namespace neuron::host
