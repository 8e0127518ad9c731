#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

// Short questions to a written host directory.
namespace neuron::sim::testing {

inline std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "<absent: " + path + ">";
  return {std::istreambuf_iterator<char>(file), {}};
}

inline bool is_there(const std::string& path) {
  return std::filesystem::exists(std::filesystem::symlink_status(path));
}

inline unsigned mode_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777U : 0U;
}

}  // namespace neuron::sim::testing
