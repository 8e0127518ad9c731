#include "test/unit/dra/kill_at.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>

namespace neuron::plugin::dra {
namespace {

int steps_left = -1;  // -1: nobody is to be ended
KillAt place = KillAt::before;
bool is_disk_full = false;

}  // namespace

void kill_at(int step, KillAt at) {
  steps_left = step;
  place = at;
}

void fill_disk(bool is_full) {
  is_disk_full = is_full;
}

namespace {

// Whether the file has blocks for so many bytes more.
bool has_room(int fd, std::size_t size) {
  constexpr off_t kBlock = 512;
  struct stat info {};
  if (!is_disk_full || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return true;
  return ::lseek(fd, 0, SEEK_CUR) + static_cast<off_t>(size) <= info.st_blocks * kBlock;
}

// `size`: of a write, 0 else; `call` takes how much of it is to be written.
template <typename Call>
auto step(std::size_t size, Call call) -> decltype(call(size)) {
  if (steps_left < 0 || --steps_left > 0) return call(size);
  if (place == KillAt::before) ::_exit(kKilled);
  (void)call(place == KillAt::half_way ? size / 2 : size);
  ::_exit(kKilled);
}

int do_open(const char* path, int flags, unsigned mode) {
  const auto call = [&](std::size_t) { return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode)); };
  return (flags & (O_CREAT | O_TRUNC)) != 0 ? step(0, call) : call(0);
}

}  // namespace
}  // namespace neuron::plugin::dra

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"  // of struct flock, which has the name of the call
extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const unsigned mode = (flags & O_CREAT) != 0 ? va_arg(arguments, unsigned) : 0;
  va_end(arguments);
  return neuron::plugin::dra::do_open(path, flags, mode);
}

int posix_fallocate(int fd, off_t from, off_t size) {
  if (!neuron::plugin::dra::has_room(fd, static_cast<std::size_t>(size))) return ENOSPC;
  return ::syscall(SYS_fallocate, fd, 0, from, size) == 0 ? 0 : errno;
}

ssize_t write(int fd, const void* bytes, std::size_t size) {
  if (!neuron::plugin::dra::has_room(fd, size)) {
    errno = ENOSPC;
    return -1;
  }
  return neuron::plugin::dra::step(
      size, [&](std::size_t part) { return static_cast<ssize_t>(::syscall(SYS_write, fd, bytes, part)); });
}

int rename(const char* from, const char* to) noexcept {
  return neuron::plugin::dra::step(0, [&](std::size_t) { return static_cast<int>(::syscall(SYS_rename, from, to)); });
}

int renameat2(int, const char* from, int, const char* to, unsigned flags) noexcept {
  return neuron::plugin::dra::step(
      0, [&](std::size_t) { return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags)); });
}

int unlink(const char* path) noexcept {
  return neuron::plugin::dra::step(0, [&](std::size_t) { return static_cast<int>(::syscall(SYS_unlink, path)); });
}

int flock(int fd, int operation) noexcept {
  return neuron::plugin::dra::step(0,
                                   [&](std::size_t) { return static_cast<int>(::syscall(SYS_flock, fd, operation)); });
}
}
#pragma GCC diagnostic pop
