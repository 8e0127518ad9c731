#include "test/bench/plain_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

namespace {

using neuron::bench::PlainCall;
using Kind = PlainCall::Kind;

struct Recorder {
  std::set<PlainCall> calls;
  std::map<int, std::string> looked;  // descriptor -> path as it was asked for, of which nothing is used yet

  void use(int fd, Kind kind) {
    const auto at = looked.find(fd);
    if (at == looked.end()) return;
    calls.insert({kind, at->second});
    looked.erase(at);
  }
  void open(int fd, std::string path) {
    use(fd, Kind::look);  // what had this number before was only looked at
    if (fd < 0)
      calls.insert({Kind::look, std::move(path)});
    else
      looked[fd] = std::move(path);
  }
  void end() {
    while (!looked.empty()) use(looked.begin()->first, Kind::look);
  }
};

Recorder* recorder = nullptr;  // set while calls are collected

}  // namespace

extern "C" {
ssize_t __real_read(int fd, void* buffer, size_t count);
ssize_t __real_getdents64(int fd, void* buffer, size_t count);
ssize_t __real_readlinkat(int fd, const char* path, char* buffer, size_t count);
long __real_syscall(long number, ...);
ssize_t __wrap_read(int fd, void* buffer, size_t count);
ssize_t __wrap_getdents64(int fd, void* buffer, size_t count);
ssize_t __wrap_readlinkat(int fd, const char* path, char* buffer, size_t count);
long __wrap_syscall(long number, ...);
}

namespace {

std::string path_of(int directory, const char* path) {
  std::array<char, 4096> buffer{};
  const std::string link = "/proc/self/fd/" + std::to_string(directory);
  if (__real_readlinkat(AT_FDCWD, link.c_str(), buffer.data(), buffer.size() - 1) <= 0) return path;
  return *path == '\0' || std::strcmp(path, ".") == 0 ? buffer.data() : std::string(buffer.data()) + '/' + path;
}

}  // namespace

ssize_t __wrap_read(int fd, void* buffer, size_t count) {
  if (recorder != nullptr) recorder->use(fd, Kind::read);
  return __real_read(fd, buffer, count);
}

ssize_t __wrap_getdents64(int fd, void* buffer, size_t count) {
  if (recorder != nullptr) recorder->use(fd, Kind::list);
  return __real_getdents64(fd, buffer, count);
}

ssize_t __wrap_readlinkat(int fd, const char* path, char* buffer, size_t count) {
  constexpr std::string_view kDescriptor = "/proc/self/fd/";
  const ssize_t length = __real_readlinkat(fd, path, buffer, count);
  if (recorder == nullptr || length < 0) return length;
  if (*path == '\0')
    recorder->use(fd, Kind::link);
  else if (std::string_view(path).starts_with(kDescriptor))
    recorder->use(std::atoi(path + kDescriptor.size()), Kind::link);
  else
    recorder->calls.insert({Kind::link, path_of(fd, path)});
  return length;
}

long __wrap_syscall(long number, ...) {
  std::va_list list;
  va_start(list, number);
  std::array<long, 6> words{};
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  const long result = __real_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  if (recorder != nullptr && number == SYS_openat2) {
    recorder->open(static_cast<int>(result),
                   path_of(static_cast<int>(words[0]), reinterpret_cast<const char*>(words[1])));
  }
  return result;
}

namespace neuron::bench {
namespace {

bool open_and_use(const PlainCall& call) {
  alignas(dirent64) std::array<char, 16384> buffer;  // NOLINT: the kernel fills it
  const bool reads = call.kind == Kind::read;
  const int fd = ::open(call.path.c_str(), (reads ? O_RDONLY : O_RDONLY | O_DIRECTORY) | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t count = reads ? __real_read(fd, buffer.data(), 4096) : 1;
  while (!reads && count > 0) count = __real_getdents64(fd, buffer.data(), buffer.size());
  ::close(fd);
  return count >= 0;
}

}  // namespace

std::vector<PlainCall> calls_of(const std::function<void()>& run) {
  Recorder collected;
  recorder = &collected;
  run();
  recorder = nullptr;
  collected.end();
  return {collected.calls.begin(), collected.calls.end()};
}

bool make_plainly(const std::vector<PlainCall>& calls) {
  std::array<char, 4096> target;  // NOLINT: the kernel fills it
  for (const PlainCall& call : calls) {
    if (call.kind == Kind::link)
      (void)!__real_readlinkat(AT_FDCWD, call.path.c_str(), target.data(), target.size());
    else if (call.kind == Kind::look)
      (void)!::access(call.path.c_str(), F_OK);
    else if (!open_and_use(call))
      return false;
  }
  return true;
}

std::string to_line(const PlainCall& call) {
  return std::to_string(static_cast<int>(call.kind)) + call.path + '\n';
}

PlainCall from_line(const std::string& line) {
  return {static_cast<Kind>(line.at(0) - '0'), line.substr(1)};
}

}  // namespace neuron::bench
