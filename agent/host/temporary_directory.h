#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "agent/base/fd.h"
#include "agent/base/result.h"

namespace neuron::host {

// The best place for many small files for a short time: $TMPDIR if set, else /dev/shm, where they are made ten times
// faster, if `bytes` and `entries` fit in there, else /tmp.
[[nodiscard]] std::string temporary_place(std::uint64_t bytes, std::uint64_t entries);

// A private directory (mode 0700) that is removed with its contents when the object is destroyed or the process ends,
// also by SIGKILL: a small child of this process makes it, waits for that and removes it. The child is out of reach of
// the terminal's signals and holds none of this process's files.
//
// If the child is killed as well, the directory stays until the next make() in the same place: a directory without a
// lock has no living owner. One thread at a time.
class TemporaryDirectory {
 public:
  // Below `place`, an absolute path. Forks, which is safe also with other threads. Blocks on files. Errors: internal
  // (it could not be made: no such place, no room, no process), unavailable (another process removes it).
  [[nodiscard]] static Result<std::unique_ptr<TemporaryDirectory>> make(const std::string& place);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int handle() const { return handle_.get(); }  // open for reading

  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] int start_cleaner();
  void end_cleaner() noexcept;

  std::string path_;  // "" when it was not made
  Fd handle_;         // locked
  Fd cleaner_;        // the cleaner begins at a byte from here, or when it is closed
  pid_t cleaner_pid_ = -1;
};

}  // namespace neuron::host
