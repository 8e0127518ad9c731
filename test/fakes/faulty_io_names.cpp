// The part of faulty_io.cpp for calls that change or watch names, or reach a socket by its name. Of the rules "hang"
// and "slow" count.
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <string>

#include "test/fakes/faulty_io.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int mkdir(const char* path, mode_t mode) {
  delay_by_rules(AT_FDCWD, path);
  return static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}
EXPORTED int unlinkat(int directory, const char* path, int flags) {
  delay_by_rules(directory, path);
  return static_cast<int>(::syscall(SYS_unlinkat, directory, path, flags));
}
EXPORTED int unlink(const char* path) {
  return unlinkat(AT_FDCWD, path, 0);
}
EXPORTED int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
  delay_by_rules(from_directory, from);
  delay_by_rules(to_directory, to);
  return static_cast<int>(::syscall(SYS_renameat2, from_directory, from, to_directory, to, flags));
}
EXPORTED int rename(const char* from, const char* to) {
  return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}
EXPORTED int flock(int fd, int operation) {
  delay_by_rules(fd, "");
  return static_cast<int>(::syscall(SYS_flock, fd, operation));
}
EXPORTED int inotify_add_watch(int fd, const char* path, unsigned mask) {
  delay_by_rules(AT_FDCWD, path);
  return static_cast<int>(::syscall(SYS_inotify_add_watch, fd, path, mask));
}

namespace {

void delay_socket(const struct sockaddr* address, socklen_t size) {
  struct sockaddr_un place {};
  if (address == nullptr || size <= sizeof(sa_family_t) || size > sizeof place) return;
  ::memcpy(&place, address, size);
  if (place.sun_family != AF_UNIX || place.sun_path[0] == '\0') return;
  delay_by_rules(AT_FDCWD, std::string(place.sun_path, ::strnlen(place.sun_path, sizeof place.sun_path)).c_str());
}

}  // namespace

EXPORTED int bind(int fd, const struct sockaddr* address, socklen_t size) {
  delay_socket(address, size);
  return static_cast<int>(::syscall(SYS_bind, fd, address, size));
}
EXPORTED int connect(int fd, const struct sockaddr* address, socklen_t size) {
  delay_socket(address, size);
  return static_cast<int>(::syscall(SYS_connect, fd, address, size));
}
