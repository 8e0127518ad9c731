#include "tools/neuron-gather/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>

#include "agent/base/fd.h"
#include "tools/neuron-gather/tar_text.h"

namespace neuron::gather {
namespace {

// The one folder that holds everything in an archive; the same in all, so that equal captures are equal files.
constexpr std::string_view kTop = "neuron-gather";

tl::unexpected<Error> errno_failure(const std::string& path) {
  return fail(error_from_errno(errno, path));
}

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_failure(path);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> write_archive(const Capture& capture, const std::string& path) {
  TRY_ASSIGN(const std::string bytes, gzip_text(tar_text(capture, kTop)));
  if (path == "-") return write_all(STDOUT_FILENO, bytes, "standard output");
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid() && errno == EEXIST) {
    return fail(ErrorCode::failed_precondition, path + ": is there already; name another or remove it");
  }
  if (!fd.valid()) return errno_failure(path);
  auto written = write_all(fd.get(), bytes, path);
  if (written && ::close(fd.release()) != 0) written = errno_failure(path);
  if (!written) ::unlink(path.c_str());
  return written;
}

Result<void> write_entry(int directory, const std::string& path, const Entry& entry) {
  switch (entry.kind) {
    case EntryKind::folder:
      if (::mkdirat(directory, path.c_str(), 0755) != 0) return errno_failure(path);
      return {};
    case EntryKind::link:
      if (::symlinkat(entry.text.c_str(), directory, path.c_str()) != 0) return errno_failure(path);
      return {};
    case EntryKind::file:
      break;
  }
  const Fd fd(::openat(directory, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return errno_failure(path);
  return write_all(fd.get(), entry.text, path);
}

Result<void> write_directory(const Capture& capture, const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return errno_failure(path);
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return errno_failure(path);
  std::error_code error;
  if (!std::filesystem::is_empty(path, error) || error) {
    return fail(ErrorCode::failed_precondition, path + ": is not empty; name a new directory");
  }
  for (const auto& [relative, entry] : capture.entries()) {
    if (auto written = write_entry(directory.get(), relative, entry); !written) {
      return fail(std::move(written).error().with_context(path));
    }
  }
  return {};
}

}  // namespace

bool names_archive(const std::string& path) {
  return path == "-" || path.ends_with(".tar.gz") || path.ends_with(".tgz");
}

Result<void> write_output(const Capture& capture, const std::string& path) {
  return names_archive(path) ? write_archive(capture, path) : write_directory(capture, path);
}

}  // namespace neuron::gather
