#include "tools/neuron-sim/trees.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "agent/base/fd.h"

namespace neuron::sim {

namespace fs = std::filesystem;

Result<TreeWriter> TreeWriter::open(const std::string& directory) {
  Fd handle(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!handle.valid()) return fail(error_from_errno(errno, directory));
  TreeWriter tree(directory, std::move(handle));
  tree.find_old();
  if (!tree.state_) return fail(std::move(tree.state_).error());
  return tree;
}

void TreeWriter::find_old() {
  std::error_code error;
  const std::size_t prefix = (fs::path(root_) / "").string().size();
  for (fs::recursive_directory_iterator it(fs::path(root_) / "", error), end; !error && it != end;
       it.increment(error)) {
    const auto type = it->symlink_status(error).type();
    const Old kind = type == fs::file_type::directory ? Old::directory
                     : type == fs::file_type::regular ? Old::file
                                                      : Old::other;
    old_.emplace(it->path().string().substr(prefix), kind);
  }
  if (error) note_failure(error.value(), "");
}

void TreeWriter::note_failure(int os_errno, const std::string& path) {
  if (state_) state_ = fail(error_from_errno(os_errno, root_ + "/" + path));
}

void TreeWriter::make_parent(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash != std::string::npos) directory(std::string_view(path).substr(0, slash));
}

// True when an old entry of the wanted kind is at `path` and may be reused; one of another kind is removed.
bool TreeWriter::replace_old(const std::string& path, Old wanted) {
  const auto found = old_.find(path);
  if (found == old_.end()) return false;
  const Old kind = found->second;
  if (kind == Old::directory && wanted != Old::directory) {
    std::vector<std::pair<std::string, Old>> below;
    for (auto it = std::next(found); it != old_.end() && it->first.starts_with(path); ++it) {
      if (it->first.starts_with(path + "/")) below.emplace_back(*it);
    }
    for (auto it = below.rbegin(); it != below.rend(); ++it) remove_old(it->first, it->second);
  }
  old_.erase(path);
  if (kind == wanted) return true;
  remove_old(path, kind);
  return false;
}

void TreeWriter::remove_old(const std::string& path, Old kind) {
  old_.erase(path);
  const int flags = kind == Old::directory ? AT_REMOVEDIR : 0;
  if (::unlinkat(handle_.get(), path.c_str(), flags) != 0 && errno != ENOENT) note_failure(errno, path);
}

void TreeWriter::directory(std::string_view path) {
  if (!state_ || path.empty() || directories_.contains(std::string(path))) return;
  std::string name(path);
  make_parent(name);
  if (!state_) return;
  if (!replace_old(name, Old::directory)) {
    const bool made = ::mkdirat(handle_.get(), name.c_str(), 0755) == 0;
    if (!made && errno != EEXIST) return note_failure(errno, name);
    if (made && ::fchmodat(handle_.get(), name.c_str(), 0755, 0) != 0) return note_failure(errno, name);
  }
  directories_.insert(std::move(name));
}

// A read-only file of a former host is replaced: the owner of the directory may unlink it.
Fd TreeWriter::open_for_writing(const std::string& path) {
  const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  Fd fd(::openat(handle_.get(), path.c_str(), flags, 0600));
  if (!fd.valid() && errno == EACCES && ::unlinkat(handle_.get(), path.c_str(), 0) == 0) {
    fd = Fd(::openat(handle_.get(), path.c_str(), flags, 0600));
  }
  return fd;
}

void TreeWriter::file(std::string_view path, std::string_view text, mode_t mode) {
  const std::string name(path);
  make_parent(name);
  if (!state_) return;
  std::ignore = replace_old(name, Old::file);
  const Fd fd = open_for_writing(name);
  if (!fd.valid()) return note_failure(errno, name);
  const auto size = static_cast<off_t>(text.size());
  if (const auto written = write_all(fd.get(), text, name); !written)
    return note_failure(written.error().os_errno, name);
  // Cut at the end instead of O_TRUNC at the start: ext4 answers that with a flush of each file.
  if (::ftruncate(fd.get(), size) != 0 || ::fchmod(fd.get(), mode) != 0) note_failure(errno, name);
}

void TreeWriter::lines(const std::string& folder, std::initializer_list<LineFile> files) {
  for (const LineFile& one : files) {
    if (one.exists) file(folder + std::string(one.path), std::string(one.text) + "\n", one.mode);
  }
}

void TreeWriter::link(std::string_view path, std::string_view target) {
  const std::string name(path);
  make_parent(name);
  if (!state_) return;
  if (replace_old(name, Old::other)) remove_old(name, Old::other);
  if (::symlinkat(relative_link(path, target).c_str(), handle_.get(), name.c_str()) != 0) note_failure(errno, name);
}

void TreeWriter::device_node(std::string_view path) {
  const std::string name(path);
  make_parent(name);
  if (!state_) return;
  if (replace_old(name, Old::other)) remove_old(name, Old::other);
  constexpr unsigned kMemMajor = 1;
  constexpr unsigned kNullMinor = 3;
  if (::mknodat(handle_.get(), name.c_str(), S_IFCHR | 0666, makedev(kMemMajor, kNullMinor)) != 0) {
    return file(path, "", 0666);
  }
  if (::fchmodat(handle_.get(), name.c_str(), 0666, 0) != 0) note_failure(errno, name);
}

Result<void> TreeWriter::finish() {
  const auto stale = std::exchange(old_, {});
  for (auto it = stale.rbegin(); state_ && it != stale.rend(); ++it) remove_old(it->first, it->second);
  return state_;
}

std::string relative_link(std::string_view from, std::string_view to) {
  return fs::path(to).lexically_relative(fs::path(from).parent_path()).string();
}

}  // namespace neuron::sim
