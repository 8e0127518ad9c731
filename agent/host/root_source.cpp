#include "agent/host/root_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "agent/base/fd.h"

namespace neuron::host {

// Thousands of small files are made ten times faster in memory, where it has room for them.
std::string temporary_place(std::uint64_t bytes, std::uint64_t entries) {
  const char* chosen = std::getenv("TMPDIR");
  if (chosen != nullptr && *chosen == '/') return chosen;
  constexpr const char* kMemory = "/dev/shm";
  constexpr std::uint64_t kBlock = 4096;  // a file takes at least one
  struct statvfs room {};
  const bool fits = ::statvfs(kMemory, &room) == 0 && room.f_bavail * room.f_frsize >= bytes + entries * kBlock &&
                    room.f_favail >= entries;
  return fits && ::access(kMemory, W_OK | X_OK) == 0 ? kMemory : "/tmp";
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
  TRY_ASSIGN(source.temporary_, TemporaryDirectory::make(temporary_place(bounds.total_bytes, bounds.entries)));
  const TemporaryDirectory& temporary = *source.temporary_;
  TRY_ASSIGN(const std::string top, unpack_archive(archive.get(), argument, temporary.handle(), bounds));
  source.directory_ = top.empty() ? temporary.path() : temporary.path() + '/' + top;
  return source;
}

}  // namespace neuron::host
