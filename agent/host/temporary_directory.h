#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "agent/base/fd.h"
#include "agent/base/result.h"

namespace neuron::host {

// A private directory (mode 0700) that is removed with everything in it when the object goes, and also when the process
// ends in whatever way, SIGKILL included: a small child of this process makes it, waits for that and removes it. The
// child is out of reach of the terminal's signals, holds none of this process's files, and ends with its work.
//
// Should the child be killed as well, the directory stays until the next make() in the same place: a lock on the
// directory shows that its owner lives. Movable; one thread at a time.
class TemporaryDirectory {
 public:
  // Below `place`, an absolute path. Forks, which is safe also where other threads run. Blocks on files. Errors:
  // internal (it could not be made: no such place, no room, no process), unavailable (another process removes it).
  [[nodiscard]] static Result<TemporaryDirectory> make(const std::string& place);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] int handle() const { return handle_.get(); }  // open for reading

  ~TemporaryDirectory() { remove(); }
  TemporaryDirectory(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept;
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

 private:
  explicit TemporaryDirectory(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] int start_cleaner();
  void end_cleaner() noexcept;
  void remove() noexcept;

  std::string path_;  // "" when it was moved away
  Fd handle_;         // locked
  Fd cleaner_;        // the cleaner begins when it reads from here or the last writer has closed it
  pid_t cleaner_pid_ = -1;
};

}  // namespace neuron::host
