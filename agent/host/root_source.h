#pragma once

#include <string>
#include <utility>

#include "agent/base/fd.h"
#include "agent/base/result.h"
#include "agent/host/archive_unpack.h"

namespace neuron::host {

// What a program's --root names: a directory, used as it is, or an archive (see unpack_archive), unpacked into a
// private directory that is removed when the object goes: below $TMPDIR if set, else /dev/shm if it has the room, else
// /tmp. Hand directory() to FsRoot::open
// and set_hwloc_root, and keep the object for as long as they are used. When everything in the archive lies below one
// folder with a name of its own ("node-17/sys/…"), that folder is the root.
//
// A process that is killed leaves its directory behind; the next open() of an archive removes it. A lock on the
// directory tells that its owner lives. Movable. open() blocks on files; any thread.
class RootSource {
 public:
  // Errors: not_found, permission_denied; data_corrupt (no archive, or one that is refused; the message names archive,
  // entry and reason); internal (the temporary directory could not be made or written).
  [[nodiscard]] static Result<RootSource> open(const std::string& argument, const ArchiveBounds& bounds = {});

  // The argument itself, or where the archive was unpacked.
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] bool is_unpacked() const { return !temporary_.empty(); }

  ~RootSource() { remove(); }
  RootSource(RootSource&& other) noexcept;
  RootSource& operator=(RootSource&& other) noexcept;
  RootSource(const RootSource&) = delete;
  RootSource& operator=(const RootSource&) = delete;

 private:
  explicit RootSource(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] Result<void> make_temporary(const ArchiveBounds& bounds);
  void remove() noexcept;

  std::string directory_;
  std::string temporary_;  // to be removed; "" for a directory that was given
  Fd lock_;                // handle of the temporary directory, locked
};

}  // namespace neuron::host
