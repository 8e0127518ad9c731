#include "tools/neuron-sim/host_directory.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;

bool is_simulated(const fs::path& dir) {
  std::error_code error;
  return fs::symlink_status(dir / kMarkerFile, error).type() == fs::file_type::regular;
}

}  // namespace

Result<void> prepare_directory(const std::string& dir) {
  std::error_code error;
  const fs::path path(dir);
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    fs::create_directories(path, error);
    if (error) return fail(error_from_errno(error.value(), "making " + dir));
    return {};
  }
  if (status.type() != fs::file_type::directory) {
    return fail(ErrorCode::failed_precondition, dir + " is not a directory");
  }
  if (is_simulated(path)) return {};
  const bool empty = fs::is_empty(path, error);
  if (error) return fail(error_from_errno(error.value(), dir));
  if (empty) return {};
  return fail(ErrorCode::failed_precondition, dir + " is not empty and not a simulated host (no " + kMarkerFile +
                                                  "); give an empty or a new directory");
}

Result<void> require_simulated(const std::string& dir) {
  if (is_simulated(fs::path(dir))) return {};
  return fail(ErrorCode::failed_precondition,
              dir + " is not a simulated host (no " + kMarkerFile + "); make one with neuron-sim node");
}

bool stays_below(std::string_view path) {
  const auto parts = split(path, '/');
  return !path.empty() && path.front() != '/' &&
         std::none_of(parts.begin(), parts.end(), [](std::string_view part) { return part == ".."; });
}

}  // namespace neuron::sim
