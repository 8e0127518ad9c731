// A library for LD_PRELOAD that makes reads of files go wrong as a broken driver does, by patterns from a control file
// that is read anew whenever it changes (write it elsewhere and rename it). FAULTY_IO names it; one rule per line:
//
//   hang PATTERN            every call on the path waits until the rule is gone
//   slow PATTERN MS         every call on the path takes so much longer
//   eio PATTERN             reading, listing, stat and ioctl fail with EIO
//   nodev PATTERN           reading fails with ENODEV, as of a port whose device is dead
//   deny PATTERN            opening fails with EACCES
//   nofile PATTERN          opening fails with EMFILE, as in a process without a free descriptor
//   vanish PATTERN          there is no such name: not to open, not to look at, not in its folder; an open file: ENODEV
//   empty PATTERN           reads as empty
//   garbage PATTERN         what is read is as long as it is, and nonsense
//   huge PATTERN            never ends
//   short PATTERN           each read gives half of what it could
//   text PATTERN TEXT       reads as TEXT
//
// An openat2 that asks for RESOLVE_CACHED does not wait, as in the kernel: it fails with EAGAIN where it would hang.
// PATTERN is one of fnmatch(3) for the absolute path, in which '*' also stands for '/'; no blanks. A call is judged by
// the path it names and, once a file is open, by where its descriptor really leads. The first rule that matches counts.
// Covered: open, openat, openat2 (by syscall()), fopen, opendir, read, pread, getdents64, readlink, readlinkat, stat,
// lstat, fstatat, statx, access, faccessat, ioctl, also under the names that _FORTIFY_SOURCE gives them; for "hang"
// and "slow" those in faulty_io_names.cpp too. Calls from within libc itself are not. "nofile inotify" refuses inotify
// instances as fs.inotify.max_user_instances does.

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "test/fakes/faulty_io.h"

namespace {

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// The kernel itself, past everything that is replaced here.
template <typename... Arguments>
long kernel(long number, Arguments... arguments) {
  static auto* const real = next<long(long, ...)>("syscall");
  return real(number, arguments...);
}

struct Rule {
  std::string action;
  std::string pattern;
  std::string argument;
};

std::string read_whole(const char* path) {
  std::string text;
  const int fd = static_cast<int>(kernel(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
  if (fd < 0) return text;
  char buffer[4096];
  for (long count = 0; (count = kernel(SYS_read, fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  kernel(SYS_close, fd);
  return text;
}

std::vector<Rule> parse(const std::string& text) {
  std::vector<Rule> rules;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Rule rule;
    words >> rule.action >> rule.pattern >> std::ws;
    std::getline(words, rule.argument);
    if (!rule.pattern.empty()) rules.push_back(rule);
  }
  return rules;
}

std::optional<Rule> rule_for(const std::string& path) {
  static const char* const control = ::getenv("FAULTY_IO");
  if (control == nullptr || path.empty()) return std::nullopt;
  static std::mutex mutex;
  static struct stat last {};
  static std::vector<Rule> rules;
  const std::lock_guard lock(mutex);
  struct stat now {};
  if (kernel(SYS_newfstatat, AT_FDCWD, control, &now, 0) != 0) {
    rules.clear();
    last = {};
  } else if (now.st_ino != last.st_ino || now.st_mtim.tv_nsec != last.st_mtim.tv_nsec ||
             now.st_mtim.tv_sec != last.st_mtim.tv_sec || now.st_size != last.st_size) {
    rules = parse(read_whole(control));
    last = now;
  }
  for (const Rule& rule : rules) {
    if (::fnmatch(rule.pattern.c_str(), path.c_str(), 0) == 0) return rule;
  }
  return std::nullopt;
}

std::string path_of(int fd) {
  char link[64];
  char target[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long length = kernel(SYS_readlinkat, AT_FDCWD, link, target, sizeof target);
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : "";
}

std::string path_at(int directory, const char* name) {
  if (name == nullptr || *name == '\0') return path_of(directory);
  if (*name == '/') return name;
  std::string base = path_of(directory);
  if (directory == AT_FDCWD) {
    char target[4096];
    const long length = kernel(SYS_getcwd, target, sizeof target);
    base = length > 1 ? std::string(target, static_cast<std::size_t>(length) - 1) : "";
  }
  return std::string(name) == "." ? base : base + '/' + name;
}

void nap(long milliseconds) {
  const struct timespec time { milliseconds / 1000, milliseconds % 1000 * 1000000 };
  kernel(SYS_nanosleep, &time, nullptr);
}

// The rule that is left to obey once the call has been delayed as its rules say.
std::optional<Rule> judge(const std::string& path) {
  const int saved = errno;
  auto rule = rule_for(path);
  while (rule && rule->action == "hang") {
    nap(10);
    rule = rule_for(path);
  }
  if (rule && rule->action == "slow") {
    nap(std::atol(rule->argument.c_str()));
    rule.reset();
  }
  errno = saved;
  return rule;
}

// The errno with which opening or looking at the path fails; 0 = it does not.
int refusal(const std::string& path, bool is_open) {
  const auto rule = judge(path);
  if (!rule) return 0;
  if (rule->action == "vanish") return ENOENT;
  if (is_open && rule->action == "deny") return EACCES;
  if (is_open && rule->action == "nofile") return EMFILE;
  return !is_open && rule->action == "eio" ? EIO : 0;
}

template <typename Call>
auto unless_refused(const std::string& path, bool is_open, Call call) -> decltype(call()) {
  if (const int error = refusal(path, is_open); error != 0) {
    errno = error;
    return static_cast<decltype(call())>(-1);
  }
  return call();
}

int do_open(int directory, const char* name, int flags, mode_t mode) {
  return unless_refused(path_at(directory, name), true,
                        [&] { return static_cast<int>(kernel(SYS_openat, directory, name, flags, mode)); });
}

mode_t mode_of(int flags, va_list& arguments) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

// What is read of `fd` under a rule that changes the text; `real` reads.
template <typename Real>
ssize_t do_read(int fd, void* buffer, std::size_t size, Real real) {
  const auto rule = judge(path_of(fd));
  if (!rule) return real(size);
  const std::string& action = rule->action;
  if (action == "eio" || action == "vanish" || action == "nodev") {
    errno = action == "eio" ? EIO : ENODEV;
    return -1;
  }
  if (action == "empty") return 0;
  if (action == "huge") {
    ::memset(buffer, '7', size);
    return static_cast<ssize_t>(size);
  }
  const ssize_t count = real(action == "short" ? std::max<std::size_t>(size / 2, 1) : size);
  if (count <= 0 || (action != "garbage" && action != "text")) return count;
  if (action == "text") {
    const std::string text = rule->argument + '\n';
    const std::size_t length = std::min(size, text.size());
    ::memcpy(buffer, text.data(), length);
    return static_cast<ssize_t>(length);
  }
  constexpr char kNonsense[] = "\x1b]0;\xff\xfe-9\n\t%s\x7f{[\"";
  auto* bytes = static_cast<char*>(buffer);
  for (ssize_t i = 0; i < count; ++i) bytes[i] = kNonsense[static_cast<std::size_t>(i) % (sizeof kNonsense - 1)];
  return count;
}

ssize_t do_readlink(int directory, const char* name, char* buffer, std::size_t size) {
  return unless_refused(path_at(directory, name), false,
                        [&] { return static_cast<ssize_t>(kernel(SYS_readlinkat, directory, name, buffer, size)); });
}

int do_stat(int directory, const char* name, struct stat* info, int flags) {
  return unless_refused(path_at(directory, name), false,
                        [&] { return static_cast<int>(kernel(SYS_newfstatat, directory, name, info, flags)); });
}

int do_access(int directory, const char* name, int mode) {
  return unless_refused(path_at(directory, name), false,
                        [&] { return static_cast<int>(kernel(SYS_faccessat, directory, name, mode)); });
}

// Takes vanished names out of what getdents64 gave.
ssize_t without_vanished(const std::string& folder, char* buffer, ssize_t count) {
  ssize_t kept = 0;
  for (ssize_t at = 0; at < count;) {
    auto* entry = reinterpret_cast<struct dirent64*>(buffer + at);
    const unsigned short length = entry->d_reclen;
    const auto rule = rule_for(folder + '/' + entry->d_name);
    if (!rule || rule->action != "vanish") {
      ::memmove(buffer + kept, entry, length);
      kept += length;
    }
    at += length;
  }
  return kept;
}

}  // namespace

void delay_by_rules(int directory, const char* name) {
  (void)judge(path_at(directory, name));
}

#define EXPORTED extern "C" __attribute__((visibility("default")))

#define OPEN_LIKE(name)                                 \
  EXPORTED int name(const char* path, int flags, ...) { \
    va_list arguments;                                  \
    va_start(arguments, flags);                         \
    const mode_t mode = mode_of(flags, arguments);      \
    va_end(arguments);                                  \
    return do_open(AT_FDCWD, path, flags, mode);        \
  }
#define OPENAT_LIKE(name)                                              \
  EXPORTED int name(int directory, const char* path, int flags, ...) { \
    va_list arguments;                                                 \
    va_start(arguments, flags);                                        \
    const mode_t mode = mode_of(flags, arguments);                     \
    va_end(arguments);                                                 \
    return do_open(directory, path, flags, mode);                      \
  }
OPEN_LIKE(open)
OPEN_LIKE(open64)
OPEN_LIKE(__open_2)
OPEN_LIKE(__open64_2)
OPENAT_LIKE(openat)
OPENAT_LIKE(openat64)
OPENAT_LIKE(__openat_2)
OPENAT_LIKE(__openat64_2)

EXPORTED long syscall(long number, ...) {
  va_list arguments;
  va_start(arguments, number);
  long words[6];
  for (long& word : words) word = va_arg(arguments, long);
  va_end(arguments);
  const auto call = [&] { return kernel(number, words[0], words[1], words[2], words[3], words[4], words[5]); };
  if (number != SYS_openat2) return call();
  const std::string path = path_at(static_cast<int>(words[0]), reinterpret_cast<const char*>(words[1]));
  if ((reinterpret_cast<const struct open_how*>(words[2])->resolve & RESOLVE_CACHED) != 0) {
    if (const auto rule = rule_for(path); rule && rule->action == "hang") {
      errno = EAGAIN;
      return -1;
    }
  }
  return unless_refused(path, true, call);
}

EXPORTED ssize_t read(int fd, void* buffer, std::size_t size) {
  return do_read(fd, buffer, size, [&](std::size_t length) { return kernel(SYS_read, fd, buffer, length); });
}
EXPORTED ssize_t __read_chk(int fd, void* buffer, std::size_t size, std::size_t) {
  return read(fd, buffer, size);
}
EXPORTED ssize_t pread(int fd, void* buffer, std::size_t size, off_t offset) {
  return do_read(fd, buffer, size, [&](std::size_t length) { return kernel(SYS_pread64, fd, buffer, length, offset); });
}
EXPORTED ssize_t pread64(int fd, void* buffer, std::size_t size, off_t offset) {
  return pread(fd, buffer, size, offset);
}

EXPORTED ssize_t getdents64(int fd, void* buffer, std::size_t size) {
  const std::string folder = path_of(fd);
  return unless_refused(folder, false, [&] {
    for (;;) {
      const ssize_t count = kernel(SYS_getdents64, fd, buffer, size);
      if (count <= 0) return count;
      const ssize_t kept = without_vanished(folder, static_cast<char*>(buffer), count);
      if (kept > 0) return kept;
    }
  });
}

EXPORTED ssize_t readlinkat(int directory, const char* name, char* buffer, std::size_t size) {
  return do_readlink(directory, name, buffer, size);
}
EXPORTED ssize_t __readlinkat_chk(int directory, const char* name, char* buffer, std::size_t size, std::size_t) {
  return do_readlink(directory, name, buffer, size);
}
EXPORTED ssize_t readlink(const char* name, char* buffer, std::size_t size) {
  return do_readlink(AT_FDCWD, name, buffer, size);
}
EXPORTED ssize_t __readlink_chk(const char* name, char* buffer, std::size_t size, std::size_t) {
  return do_readlink(AT_FDCWD, name, buffer, size);
}

EXPORTED int stat(const char* path, struct stat* info) {
  return do_stat(AT_FDCWD, path, info, 0);
}
EXPORTED int lstat(const char* path, struct stat* info) {
  return do_stat(AT_FDCWD, path, info, AT_SYMLINK_NOFOLLOW);
}
EXPORTED int fstatat(int directory, const char* name, struct stat* info, int flags) {
  return do_stat(directory, name, info, flags);
}
EXPORTED int stat64(const char* path, struct stat64* info) {
  return do_stat(AT_FDCWD, path, reinterpret_cast<struct stat*>(info), 0);
}
EXPORTED int lstat64(const char* path, struct stat64* info) {
  return do_stat(AT_FDCWD, path, reinterpret_cast<struct stat*>(info), AT_SYMLINK_NOFOLLOW);
}
EXPORTED int fstatat64(int directory, const char* name, struct stat64* info, int flags) {
  return do_stat(directory, name, reinterpret_cast<struct stat*>(info), flags);
}
EXPORTED int statx(int directory, const char* name, int flags, unsigned mask, struct statx* info) {
  return unless_refused(path_at(directory, name), false,
                        [&] { return static_cast<int>(kernel(SYS_statx, directory, name, flags, mask, info)); });
}
EXPORTED int access(const char* name, int mode) {
  return do_access(AT_FDCWD, name, mode);
}
EXPORTED int faccessat(int directory, const char* name, int mode, int) {
  return do_access(directory, name, mode);
}

EXPORTED int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  return unless_refused(path_of(fd), false, [&] { return static_cast<int>(kernel(SYS_ioctl, fd, request, argument)); });
}

EXPORTED int inotify_init1(int flags) {
  return unless_refused("inotify", true, [&] { return static_cast<int>(kernel(SYS_inotify_init1, flags)); });
}

#define FOPEN_LIKE(name)                                                        \
  EXPORTED FILE* name(const char* path, const char* mode) {                     \
    static auto* const real = next<FILE*(const char*, const char*)>(#name);     \
    if (const int error = refusal(path_at(AT_FDCWD, path), true); error != 0) { \
      errno = error;                                                            \
      return nullptr;                                                           \
    }                                                                           \
    return real(path, mode);                                                    \
  }
FOPEN_LIKE(fopen)
FOPEN_LIKE(fopen64)

EXPORTED DIR* opendir(const char* path) {
  static auto* const real = next<DIR*(const char*)>("opendir");
  if (const int error = refusal(path_at(AT_FDCWD, path), true); error != 0) {
    errno = error;
    return nullptr;
  }
  return real(path);
}
