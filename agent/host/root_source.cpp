#include "agent/host/root_source.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace neuron::host {
namespace {

constexpr const char* kPrefix = "neuron-root-";
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// Thousands of small files are made ten times faster in memory, where it has room for whatever the bounds allow.
std::string temporary_place(const ArchiveBounds& bounds) {
  const char* chosen = std::getenv("TMPDIR");
  if (chosen != nullptr && *chosen == '/') return chosen;
  constexpr const char* kMemory = "/dev/shm";
  constexpr std::uint64_t kBlock = 4096;  // a file takes at least one
  struct statvfs room {};
  const bool fits = ::statvfs(kMemory, &room) == 0 &&
                    room.f_bavail * room.f_frsize >= bounds.total_bytes + bounds.entries * kBlock &&
                    room.f_favail >= bounds.entries;
  return fits && ::access(kMemory, W_OK | X_OK) == 0 ? kMemory : "/tmp";
}

void remove_tree(const std::string& directory) {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

// True when this handle locked the directory and the path still names it: whoever removes one holds the lock too.
bool lock(const Fd& handle, const std::string& path) {
  if (!handle.valid() || ::flock(handle.get(), LOCK_EX | LOCK_NB) != 0) return false;
  struct stat held {};
  struct stat named {};
  return ::fstat(handle.get(), &held) == 0 && ::lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino && held.st_uid == ::geteuid();
}

// Directories of this user whose owner was killed.
void remove_orphans(const std::string& place) {
  std::error_code error;
  std::filesystem::directory_iterator entries(place, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    if (!entries->path().filename().native().starts_with(kPrefix)) continue;
    const std::string path = entries->path().native();
    const Fd handle(::open(path.c_str(), kDirectoryFlags));
    if (lock(handle, path)) remove_tree(path);
  }
}

}  // namespace

RootSource::RootSource(RootSource&& other) noexcept
    : directory_(std::move(other.directory_)),
      temporary_(std::exchange(other.temporary_, {})),
      lock_(std::move(other.lock_)) {}

RootSource& RootSource::operator=(RootSource&& other) noexcept {
  if (this == &other) return *this;
  remove();
  directory_ = std::move(other.directory_);
  temporary_ = std::exchange(other.temporary_, {});
  lock_ = std::move(other.lock_);
  return *this;
}

void RootSource::remove() noexcept {
  if (temporary_.empty()) return;
  remove_tree(temporary_);
  temporary_.clear();
}

Result<void> RootSource::make_temporary(const ArchiveBounds& bounds) {
  const std::string place = temporary_place(bounds);
  remove_orphans(place);
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::string path = place + '/' + kPrefix + "XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      auto error = error_from_errno(errno, place + ": no temporary directory for the archive; set TMPDIR");
      error.code = ErrorCode::internal;
      return fail(std::move(error));
    }
    Fd handle(::open(path.c_str(), kDirectoryFlags));
    if (!lock(handle, path)) continue;  // another process took it for an orphan before it was locked
    temporary_ = std::move(path);
    lock_ = std::move(handle);
    return {};
  }
  return fail(ErrorCode::unavailable, place + ": temporary directories vanish as they are made");
}

Result<RootSource> RootSource::open(const std::string& argument, const ArchiveBounds& bounds) {
  struct stat info {};
  if (::stat(argument.c_str(), &info) != 0) {
    return fail(error_from_errno(errno, argument.empty() ? "root directory \"\"" : argument));
  }
  if (S_ISDIR(info.st_mode)) return RootSource(argument);
  const Fd archive(::open(argument.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!archive.valid()) return fail(error_from_errno(errno, argument));
  if (::fstat(archive.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(ErrorCode::data_corrupt, argument + ": neither a directory nor a tar or tar.gz archive");
  }
  RootSource source("");
  TRY(source.make_temporary(bounds));
  TRY_ASSIGN(const std::string top, unpack_archive(archive.get(), argument, source.lock_.get(), bounds));
  source.directory_ = top.empty() ? source.temporary_ : source.temporary_ + '/' + top;
  return source;
}

}  // namespace neuron::host
