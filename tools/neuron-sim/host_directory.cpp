#include "tools/neuron-sim/host_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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

bool is_whole_host(const std::string& dir) {
  std::error_code error;
  return is_simulated(fs::path(dir)) &&
         fs::symlink_status(fs::path(dir) / kPlanFile, error).type() == fs::file_type::regular;
}

Result<Fd> claim_host(const std::string& dir) {
  TRY(require_simulated(dir));
  const std::string path = dir + "/" + kClaimFile;
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd.valid()) return fail(error_from_errno(errno, path));
  std::array<char, 16> holder{};
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail(error_from_errno(errno, "locking " + path));
    const ssize_t length = ::pread(fd.get(), holder.data(), holder.size(), 0);
    const std::string_view text(holder.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    const auto pid = parse_int(trim(text), 1, 1 << 22);
    return fail(ErrorCode::failed_precondition, "another neuron-sim load runs on " + dir +
                                                    (pid ? " (pid " + std::to_string(*pid) + ")" : "") +
                                                    "; stop it first");
  }
  // Whose it is, for that message only; what a process that was killed left behind is replaced.
  const std::string self = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), self.data(), self.size(), 0) < 0) {
    return fail(error_from_errno(errno, path));
  }
  return fd;
}

bool stays_below(std::string_view path) {
  const auto parts = split(path, '/');
  return !path.empty() && path.front() != '/' &&
         std::none_of(parts.begin(), parts.end(), [](std::string_view part) { return part == ".."; });
}

}  // namespace neuron::sim
