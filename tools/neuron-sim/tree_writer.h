#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <unordered_set>

#include "agent/base/fd.h"
#include "agent/base/result.h"

namespace neuron::sim {

// Makes many small files below one directory. Paths are relative to it; parent directories are made as needed. finish()
// removes the old content of the directory; files that are written again are overwritten instead, because ext4 takes
// seconds to reuse thousands of inodes that were just freed. Links found in the directory are removed or replaced,
// never followed.
//
// After the first failure every further call does nothing, and finish() returns that failure: callers need no checks.
// Not thread-safe.
class TreeWriter {
 public:
  // Errors: not_found, permission_denied: the directory must exist.
  [[nodiscard]] static Result<TreeWriter> open(const std::string& directory);

  void directory(std::string_view path);  // mode 0755, whatever the umask

  // A file with exactly that text and mode, whatever the umask; replaces one written before. Links that this object
  // wrote are followed among the parents of `path`.
  void file(std::string_view path, std::string_view text, mode_t mode = 0444);

  // A relative symbolic link at `path` to another path of this tree; the other end need not exist yet.
  void link(std::string_view path, std::string_view target);

  // A character device like /dev/null, mode 0666; an empty regular file where making one is not permitted.
  void device_node(std::string_view path);

  // Removes old entries that were not written again. Call once, at the end.
  [[nodiscard]] Result<void> finish();

 private:
  enum class Old { directory, file, other };

  TreeWriter(std::string root, Fd handle) : root_(std::move(root)), handle_(std::move(handle)) {}
  void find_old();
  void make_parent(const std::string& path);
  [[nodiscard]] bool replace_old(const std::string& path, Old wanted);
  void remove_old(const std::string& path, Old kind);
  [[nodiscard]] Fd open_for_writing(const std::string& path);
  void note_failure(int os_errno, const std::string& path);

  std::string root_;
  Fd handle_;
  std::map<std::string, Old> old_;               // found at the start and neither written again nor removed yet
  std::unordered_set<std::string> directories_;  // known to exist
  Result<void> state_;
};

// The text of a relative link at `from` that leads to `to`, both relative to the same root:
// ("a/b/link", "a/c/d") -> "../c/d".
[[nodiscard]] std::string relative_link(std::string_view from, std::string_view to);

}  // namespace neuron::sim
