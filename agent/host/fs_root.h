#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/result.h"
#include "agent/model/device.h"

namespace neuron::host {

// Largest text read_attribute accepts: one page, as much as the kernel puts into a sysfs file.
inline constexpr std::size_t kMaxAttributeBytes = 4096;

// Names one file or directory for as long as it exists; after a device was removed and registered again it differs.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};

// Changes when entries of a directory come and go: in sysfs the number of folders, in other file systems the time.
struct DirectoryStamp {
  std::uint64_t links = 0;
  std::int64_t modified_ns = 0;  // of the wall clock
  friend bool operator==(const DirectoryStamp&, const DirectoryStamp&) = default;
};

// A machine's file tree below one directory, "/" on a live node. Opens beneath a directory handle, so that absolute
// links in a captured tree resolve inside it (openat2 RESOLVE_IN_ROOT, Linux 5.6; not used for "/").
//
// Reads only, bounded, and never waits for a writer: files are opened O_NONBLOCK, a FIFO or an endless file costs one
// read. Paths are relative to the root, without leading slash; messages show them the same way. Movable; const methods
// may be called from any thread.
class FsRoot {
 public:
  // Errors: not_found, permission_denied, or `directory` is no directory; failed_precondition where openat2 is missing
  // (a kernel before Linux 5.6, an emulator, an old seccomp profile) and `directory` is not "/".
  [[nodiscard]] static Result<FsRoot> open(const std::string& directory);

  // The given directory without trailing slashes, for messages; "/" is the live machine.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool is_live() const { return live_; }

  // The text of a small kernel file (at most kMaxAttributeBytes), without trailing white space. One open, one read, one
  // close. Errors: not_found; permission_denied; data_corrupt (larger, a directory, contains NUL); unavailable (a FIFO
  // without data); internal (the driver failed the read). The message names the path.
  [[nodiscard]] Result<std::string> read_attribute(std::string_view path) const;

  // Reads a file of up to `max_bytes`, as is, to the end. Errors: as read_attribute(); data_corrupt when it is larger.
  [[nodiscard]] Result<std::string> read_file(std::string_view path, std::size_t max_bytes) const;

  // Calls `see` with each name in a directory except "." and "..", unsorted, until it returns false; for directories of
  // any size. `see` may read below this root.
  [[nodiscard]] Result<void> visit(std::string_view path, const std::function<bool(std::string_view)>& see) const;

  // Names in a directory except "." and "..", sorted; data_corrupt above 65536 entries.
  [[nodiscard]] Result<std::vector<std::string>> list(std::string_view path) const;

  // Text of a symbolic link, not followed. Errors: not_found; invalid_argument when it is no link.
  [[nodiscard]] Result<std::string> read_link(std::string_view path) const;

  // The path with all links resolved, relative to the root without leading slash ("sys/devices/pci0000:10/…"); "" is
  // the root itself. Errors: not_found; data_corrupt for more than 40 links, as in a loop.
  [[nodiscard]] Result<std::string> real_path(std::string_view path) const;

  [[nodiscard]] bool exists(std::string_view path) const;  // links followed; false also when it is not accessible

  // Identity of the path's target, links followed.
  [[nodiscard]] Result<FileId> identify(std::string_view path) const;
  // The root directory.
  [[nodiscard]] Result<FileId> identify_self() const { return identify("."); }
  [[nodiscard]] Result<DirectoryStamp> stamp_self() const;  // one fstat

  // A subdirectory as a root of its own for fast relative reads. Links that leave it do not resolve unless this root is
  // live, so use it only for plain directories. Its messages name paths from this root.
  [[nodiscard]] Result<FsRoot> subdirectory(std::string_view path) const;

  // A file or device that is read piece by piece, opened O_RDONLY | O_NONBLOCK. Errors as the kernel's open gives them.
  [[nodiscard]] Result<Fd> open_log(std::string_view path) const;

  // A device node for ioctls that need no attach, opened O_WRONLY | O_NONBLOCK. Errors as the kernel's open gives them.
  [[nodiscard]] Result<Fd> open_device(std::string_view path) const;

 private:
  FsRoot(std::string path, std::string prefix, bool live, Fd directory)
      : path_(std::move(path)), prefix_(std::move(prefix)), live_(live), directory_(std::move(directory)) {}
  [[nodiscard]] int open_raw(std::string_view path, int flags) const;  // -1 and errno
  [[nodiscard]] Result<Fd> open_file(std::string_view path, int flags) const;
  [[nodiscard]] Error errno_error(std::string_view path) const;
  [[nodiscard]] Error corrupt(std::string_view path, std::string_view reason) const;

  std::string path_;
  std::string prefix_;  // of messages: where a subdirectory stands in the root it came from, with trailing slash
  bool live_ = false;
  Fd directory_;
};

// True when the file does not exist, which is normal for optional ones. Other errors, also ENOTDIR and ENODEV, are no
// evidence of absence.
[[nodiscard]] bool is_absent(const Error& error);

// True when this process or the machine lacks descriptors or memory: the error says nothing about the file, not even
// that it exists.
[[nodiscard]] bool is_shortage(const Error& error);

// Most problems of one device or interface, and of the host.
inline constexpr std::size_t kMaxDeviceProblems = 8;
inline constexpr std::size_t kMaxHostProblems = 32;

// Adds to a list of at most `limit`; the rest is dropped. Control bytes, as in file names, become \xNN (printable()).
void note_problem(std::vector<model::ReadProblem>& problems, std::size_t limit, model::ReadProblem problem);

// A failed read of `path`. FsRoot's messages begin with the path, those of parsers do not.
[[nodiscard]] model::ReadProblem problem_with(std::string path, const Error& error,
                                              model::ProblemKind kind = model::ProblemKind::file);

}  // namespace neuron::host
