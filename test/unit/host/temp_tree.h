#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "agent/host/fs_root.h"

namespace neuron::host {

// A small machine in a temporary directory, removed at the end. Paths are relative to it; folders appear as needed.
class TempTree {
 public:
  // `memory`: where a file system in memory is at hand, for trees of many thousand files. It may refuse device nodes.
  enum class Place { disk, memory };

  explicit TempTree(Place place = Place::disk) {
    const bool in_memory = place == Place::memory && ::access("/dev/shm", W_OK) == 0;
    std::string pattern =
        (in_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/neuron-host-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempTree() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string at(std::string_view relative) const { return path_ + '/' + std::string(relative); }
  [[nodiscard]] FsRoot root() const { return *FsRoot::open(path_); }

  void write(std::string_view relative, std::string_view text) {
    remove(relative);
    std::ofstream(parent_of(relative), std::ios::binary) << text;
  }
  void link(std::string_view relative, std::string_view target) {
    remove(relative);
    std::filesystem::create_symlink(target, parent_of(relative));
  }
  void folder(std::string_view relative) { std::filesystem::create_directories(at(relative)); }
  void fifo(std::string_view relative) {
    remove(relative);
    ::mkfifo(parent_of(relative).c_str(), 0666);
  }
  void remove(std::string_view relative) { std::filesystem::remove_all(at(relative)); }
  void move(std::string_view from, std::string_view to) { std::filesystem::rename(at(from), parent_of(to)); }

 private:
  std::string parent_of(std::string_view relative) {
    std::filesystem::create_directories(std::filesystem::path(at(relative)).parent_path());
    return at(relative);
  }

  std::string path_;
};

}  // namespace neuron::host
