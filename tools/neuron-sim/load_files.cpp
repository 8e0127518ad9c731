#include "tools/neuron-sim/load_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "agent/base/parse.h"
#include "tools/neuron-sim/host_directory.h"

namespace neuron::sim {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 10U;
constexpr const char* kFresh = ".neuron-sim/fresh-load";

// Mode of the plain file at `path`; nullopt for anything else.
std::optional<mode_t> mode_of(int directory, const std::string& path) {
  struct stat info {};
  if (::fstatat(directory, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
    return std::nullopt;
  return info.st_mode & 07777U;
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  return trim(text).find_first_not_of("0123456789") == std::string_view::npos ? parse_u64(text) : std::nullopt;
}

}  // namespace

Result<LoadFiles> LoadFiles::open(const std::string& dir) {
  TRY(require_simulated(dir));
  Fd handle(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!handle.valid()) return fail(error_from_errno(errno, dir));
  return LoadFiles(dir, std::move(handle));
}

void LoadFiles::note(int os_errno, const std::string& path) {
  if (state_) state_ = fail(error_from_errno(os_errno, dir_ + "/" + path));
}

std::optional<LoadFiles::Plain> LoadFiles::read_plain(const std::string& path) const {
  // O_NONBLOCK: opening a FIFO that `set` put there must not wait.
  const Fd fd(::openat(handle_.get(), path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (info.st_size < 0 || static_cast<std::size_t>(info.st_size) > kMaxBytes) return std::nullopt;
  Plain plain{std::string(static_cast<std::size_t>(info.st_size), '\0'), info.st_mode & 07777U};
  const ssize_t count = ::read(fd.get(), plain.text.data(), plain.text.size());
  if (count < 0 || static_cast<std::size_t>(count) != plain.text.size()) return std::nullopt;
  return plain;
}

std::optional<std::string> LoadFiles::read(const std::string& path) const {
  auto plain = read_plain(path);
  if (!plain) return std::nullopt;
  return std::move(plain->text);
}

void LoadFiles::write(const std::string& path, std::string_view text, mode_t mode) {
  const Fd fd(::openat(handle_.get(), kFresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid()) return note(errno, kFresh);
  const ssize_t count = ::write(fd.get(), text.data(), text.size());
  if (count < 0) return note(errno, kFresh);
  if (static_cast<std::size_t>(count) != text.size()) return note(ENOSPC, kFresh);
  if (::fchmod(fd.get(), mode) != 0) return note(errno, kFresh);
  if (::renameat(handle_.get(), kFresh, handle_.get(), path.c_str()) == 0) return;
  // Its folder was taken away by `set` a moment ago, or a folder stands in its place.
  if (errno != ENOENT && errno != ENOTDIR && errno != EISDIR) note(errno, path);
}

void LoadFiles::replace(const std::string& path, std::string_view text) {
  if (!state_) return;
  if (const auto mode = mode_of(handle_.get(), path)) write(path, text, *mode);
}

void LoadFiles::create(const std::string& path, std::string_view text, mode_t mode) {
  if (!state_) return;
  struct stat info {};
  const bool nothing = ::fstatat(handle_.get(), path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
  if (nothing) write(path, text, mode);
}

void LoadFiles::add(const std::string& path, std::uint64_t growth) {
  if (!state_ || growth == 0) return;
  const auto old = read_plain(path);
  const auto number = old ? number_in(old->text) : std::nullopt;
  if (number) write(path, std::to_string(*number + growth) + "\n", old->mode);
}

void LoadFiles::set(const std::string& path, std::uint64_t value) {
  if (!state_) return;
  const auto old = read_plain(path);
  const auto number = old ? number_in(old->text) : std::nullopt;
  if (number && *number != value) write(path, std::to_string(value) + "\n", old->mode);
}

void LoadFiles::make_folder(const std::string& path) {
  if (!state_) return;
  if (::mkdirat(handle_.get(), path.c_str(), 0755) != 0 && errno != EEXIST) note(errno, path);
}

void LoadFiles::make_link(const std::string& path, const std::string& target) {
  if (!state_) return;
  if (::symlinkat(target.c_str(), handle_.get(), path.c_str()) != 0 && errno != EEXIST) note(errno, path);
}

void LoadFiles::move(const std::string& from, const std::string& to) {
  if (!state_) return;
  if (::renameat(handle_.get(), from.c_str(), handle_.get(), to.c_str()) != 0 && errno != ENOENT) note(errno, from);
}

void LoadFiles::remove_folder(const std::string& path) {
  if (!state_) return;
  std::error_code error;
  std::filesystem::remove_all(dir_ + "/" + path, error);
  if (error) note(error.value(), path);
}

}  // namespace neuron::sim
