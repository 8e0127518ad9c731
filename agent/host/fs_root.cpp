#include "agent/host/fs_root.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "agent/base/fd.h"
#include "agent/base/parse.h"

namespace neuron::host {
namespace {

constexpr std::size_t kMaxEntries = 65536;
constexpr int kReadFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

// A zero-terminated path on the stack: a scan does a thousand reads.
class PathText {
 public:
  explicit PathText(std::string_view path) {
    if (path.empty()) path = ".";
    fits_ = path.size() < text_.size() && path.find('\0') == std::string_view::npos;
    if (!fits_) return;
    std::memcpy(text_.data(), path.data(), path.size());
    text_[path.size()] = '\0';
  }
  [[nodiscard]] bool fits() const { return fits_; }
  [[nodiscard]] const char* c_str() const { return text_.data(); }

 private:
  std::array<char, PATH_MAX> text_;  // uninitialised beyond the zero
  bool fits_ = false;
};

bool is_fifo(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
}

// EAGAIN: something was renamed or mounted, anywhere on the machine, while the kernel resolved a ".." (openat2(2)).
long open_beneath(int directory, const char* path, int flags) {
  constexpr int kTries = 100;
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT;
  long fd = -1;
  for (int i = 0; i < kTries; ++i) {
    fd = ::syscall(SYS_openat2, directory, path, &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN) break;
  }
  return fd;
}

// Without the call a kernel or emulator gives ENOSYS, an older seccomp profile often EPERM.
bool lacks_openat2(const Fd& directory) {
  const Fd itself(static_cast<int>(open_beneath(directory.get(), ".", O_PATH | O_CLOEXEC)));
  return !itself.valid() && (errno == ENOSYS || errno == EPERM);
}

}  // namespace

Result<FsRoot> FsRoot::open(const std::string& directory) {
  std::string path = directory;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  Fd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return fail(error_from_errno(errno, path.empty() ? "root directory \"\"" : path));
  const bool live = path == "/";
  if (!live && lacks_openat2(fd)) {
    return fail(ErrorCode::failed_precondition,
                path +
                    ": nothing can be read below a root other than /, as the system call openat2 (Linux 5.6) is "
                    "missing here; use a newer kernel, emulator or seccomp profile, or the root /");
  }
  return FsRoot(std::move(path), "", live, std::move(fd));
}

int FsRoot::open_raw(std::string_view path, int flags) const {
  const PathText text(path);
  if (!text.fits()) {
    errno = ENAMETOOLONG;
    return -1;
  }
  if (live_) return ::openat(directory_.get(), text.c_str(), flags);
  // The kernel gives up with EAGAIN when something was renamed while it walked over "..".
  for (int attempt = 0;; ++attempt) {
    const long fd = open_beneath(directory_.get(), text.c_str(), flags);
    if (fd >= 0 || errno != EAGAIN || attempt == 3) return static_cast<int>(fd);
  }
}

Result<Fd> FsRoot::open_file(std::string_view path, int flags) const {
  const int fd = open_raw(path, flags);
  if (fd < 0) return fail(errno_error(path));
  return Fd(fd);
}

Error FsRoot::errno_error(std::string_view path) const {
  const int saved = errno;
  return error_from_errno(saved, prefix_ + std::string(path));
}

Error FsRoot::corrupt(std::string_view path, std::string_view reason) const {
  return make_error(ErrorCode::data_corrupt, prefix_ + std::string(path) + ": " + std::string(reason));
}

Result<std::string> FsRoot::read_attribute(std::string_view path) const {
  const Fd fd(open_raw(path, kReadFlags));
  if (!fd.valid()) return fail(errno_error(path));
  std::array<char, kMaxAttributeBytes + 1> buffer;  // NOLINT: read() fills it
  const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
  if (count < 0) return fail(errno_error(path));
  if (count == 0 && is_fifo(fd.get())) {
    return fail(ErrorCode::unavailable, prefix_ + std::string(path) + ": a FIFO without a writer");
  }
  std::string_view text(buffer.data(), static_cast<std::size_t>(count));
  if (text.size() > kMaxAttributeBytes) return fail(corrupt(path, "larger than 4096 bytes"));
  if (text.find('\0') != std::string_view::npos) return fail(corrupt(path, "contains NUL bytes"));
  const auto last = text.find_last_not_of(" \t\n\r\f\v");
  return std::string(last == std::string_view::npos ? std::string_view{} : text.substr(0, last + 1));
}

Result<std::string> FsRoot::read_file(std::string_view path, std::size_t max_bytes) const {
  TRY_ASSIGN(const Fd fd, open_file(path, kReadFlags));
  TRY_ASSIGN(std::string text, read_all(fd.get(), max_bytes, prefix_ + std::string(path)));
  if (text.empty() && is_fifo(fd.get())) {
    return fail(ErrorCode::unavailable, prefix_ + std::string(path) + ": a FIFO without a writer");
  }
  return text;
}

Result<void> FsRoot::visit(std::string_view path, const std::function<bool(std::string_view)>& see) const {
  TRY_ASSIGN(const Fd fd, open_file(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC));
  alignas(struct dirent64) std::array<char, 16384> buffer;  // NOLINT: getdents64() fills it
  for (;;) {
    const ssize_t count = ::getdents64(fd.get(), buffer.data(), buffer.size());
    if (count < 0) return fail(errno_error(path));
    if (count == 0) return {};
    for (ssize_t at = 0; at < count;) {
      const auto* entry = reinterpret_cast<const struct dirent64*>(buffer.data() + at);
      const std::string_view name(entry->d_name);
      if (name != "." && name != ".." && !see(name)) return {};
      at += entry->d_reclen;
    }
  }
}

Result<std::vector<std::string>> FsRoot::list(std::string_view path) const {
  std::vector<std::string> names;
  TRY(visit(path, [&names](std::string_view name) {
    names.emplace_back(name);
    return names.size() <= kMaxEntries;
  }));
  if (names.size() > kMaxEntries) return fail(corrupt(path, "more than 65536 entries"));
  std::ranges::sort(names);
  return names;
}

Result<std::string> FsRoot::read_link(std::string_view path) const {
  std::array<char, PATH_MAX> target;  // NOLINT: readlinkat() fills it
  ssize_t length = -1;
  if (live_) {
    const PathText text(path);
    errno = ENAMETOOLONG;
    if (text.fits()) length = ::readlinkat(directory_.get(), text.c_str(), target.data(), target.size());
  } else {
    TRY_ASSIGN(const Fd link, open_file(path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
    length = ::readlinkat(link.get(), "", target.data(), target.size());
    // An O_PATH handle of something that is no link reads as "no such file".
    if (length < 0 && errno == ENOENT) errno = EINVAL;
  }
  if (length >= 0) return std::string(target.data(), static_cast<std::size_t>(length));
  if (errno == EINVAL) {
    return fail(ErrorCode::invalid_argument, prefix_ + std::string(path) + ": not a symbolic link");
  }
  return fail(errno_error(path));
}

Result<std::string> FsRoot::real_path(std::string_view path) const {
  constexpr int kMaxLinks = 40;       // as the kernel's own limit
  std::array<char, PATH_MAX> buffer;  // NOLINT: readlinkat() fills it
  std::string done;                   // resolved: no links, no ".."
  std::string rest(path);
  int links = 0;
  while (!rest.empty()) {
    const auto slash = rest.find('/');
    const std::string part = rest.substr(0, slash);
    rest = slash == std::string::npos ? "" : rest.substr(slash + 1);
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      const auto parent = done.rfind('/');
      done.resize(parent == std::string::npos ? 0 : parent);  // at the root ".." stays there
      continue;
    }
    const std::string next = done.empty() ? part : done + '/' + part;
    // `done` holds no link, so the plain call stays inside the root.
    const PathText text(next);
    errno = ENAMETOOLONG;
    const ssize_t length =
        text.fits() ? ::readlinkat(directory_.get(), text.c_str(), buffer.data(), buffer.size()) : ssize_t{-1};
    if (length < 0) {
      if (errno != EINVAL) return fail(errno_error(next));
      done = next;  // no link
      continue;
    }
    if (++links > kMaxLinks) return fail(corrupt(path, "too many symbolic links"));
    const std::string target(buffer.data(), static_cast<std::size_t>(length));
    if (target.starts_with('/')) done.clear();
    rest = rest.empty() ? target : target + '/' + rest;
    if (rest.size() > 2 * PATH_MAX) return fail(corrupt(path, "symbolic links grow without end"));
  }
  return done;
}

bool FsRoot::exists(std::string_view path) const {
  if (!live_) return Fd(open_raw(path, O_PATH | O_CLOEXEC)).valid();
  const PathText text(path);
  return text.fits() && ::faccessat(directory_.get(), text.c_str(), F_OK, 0) == 0;
}

Result<FileId> FsRoot::identify(std::string_view path) const {
  TRY_ASSIGN(const Fd fd, open_file(path, O_PATH | O_CLOEXEC));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return fail(errno_error(path));
  return FileId{info.st_dev, info.st_ino};
}

Result<DirectoryStamp> FsRoot::stamp_self() const {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  struct stat info {};
  if (::fstat(directory_.get(), &info) != 0) return fail(errno_error("."));
  return DirectoryStamp{info.st_nlink, info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec};
}

Result<FsRoot> FsRoot::subdirectory(std::string_view path) const {
  TRY_ASSIGN(Fd fd, open_file(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string full = path_ == "/" ? "/" + std::string(path) : path_ + '/' + std::string(path);
  return FsRoot(std::move(full), prefix_ + std::string(path) + '/', live_, std::move(fd));
}

Result<Fd> FsRoot::open_log(std::string_view path) const {
  return open_file(path, kReadFlags);
}

Result<Fd> FsRoot::open_device(std::string_view path) const {
  return open_file(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

bool is_absent(const Error& error) {
  return error.code == ErrorCode::not_found && error.os_errno == ENOENT;
}

bool is_shortage(const Error& error) {
  return error.os_errno == EMFILE || error.os_errno == ENFILE || error.os_errno == ENOMEM;
}

void note_problem(std::vector<model::ReadProblem>& problems, std::size_t limit, model::ReadProblem problem) {
  constexpr std::size_t kMaxLine = 16384;
  if (problems.size() >= limit) return;
  problem.path = printable_line(std::move(problem.path), kMaxLine);
  problem.detail = printable_line(std::move(problem.detail), kMaxLine);
  problems.push_back(std::move(problem));
}

model::ReadProblem problem_with(std::string path, const Error& error, model::ProblemKind kind) {
  const bool names_path = error.message.starts_with(path + ": ");
  std::string detail = names_path ? error.message.substr(path.size() + 2) : error.message;
  return {kind, std::move(path), std::move(detail)};
}

}  // namespace neuron::host
