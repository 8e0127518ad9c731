#include "test/bench/read_recorder.h"

#include <unistd.h>

#include <array>
#include <set>

namespace {

std::set<std::string>* recorder = nullptr;  // set while files are collected

}  // namespace

extern "C" ssize_t __real_read(int fd, void* buffer, size_t count);
extern "C" ssize_t __wrap_read(int fd, void* buffer, size_t count);
extern "C" ssize_t __wrap_read(int fd, void* buffer, size_t count) {
  if (recorder != nullptr) {
    std::array<char, 4096> path{};
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), path.data(), path.size() - 1) > 0) recorder->insert(path.data());
  }
  return __real_read(fd, buffer, count);
}

namespace neuron::bench {

std::vector<std::string> files_read_by(const std::function<void()>& run) {
  std::set<std::string> files;
  recorder = &files;
  run();
  recorder = nullptr;
  return {files.begin(), files.end()};
}

ssize_t plain_read(int fd, void* buffer, std::size_t count) {
  return __real_read(fd, buffer, count);
}

}  // namespace neuron::bench
