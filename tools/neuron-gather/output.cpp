#include "tools/neuron-gather/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

#include "agent/base/fd.h"
#include "tools/neuron-gather/tar_text.h"

namespace neuron::gather {
namespace {

// The one folder that holds everything in an archive; the same in all, so that equal captures are equal files.
constexpr std::string_view kTop = "neuron-gather";

tl::unexpected<Error> errno_failure(const std::string& path) {
  return fail(error_from_errno(errno, path));
}

Result<void> write_stdout(std::string_view bytes) {
  auto written = write_all(STDOUT_FILENO, bytes, "standard output");
  if (!written && written.error().os_errno == EPIPE) {
    return fail(ErrorCode::unavailable, "standard output was closed before all output was written");
  }
  return written;
}

tl::unexpected<Error> elsewhere(Error error) {
  error.message += "; choose another place with -o";
  return fail(std::move(error));
}

bool is_there(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

tl::unexpected<Error> there_already(const std::string& path) {
  return fail(ErrorCode::failed_precondition, path + ": exists already; choose another or remove it");
}

// Gives what is whole its name, unless somebody else took it meanwhile.
Result<void> rename_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return there_already(to);
  // Not all file systems can refuse to replace.
  if (errno != EINVAL && errno != ENOSYS) return errno_failure(to);
  if (is_there(to)) return there_already(to);
  if (::rename(from.c_str(), to.c_str()) != 0) return errno_failure(to);
  return {};
}

Result<void> write_archive(std::string_view bytes, const std::string& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return errno_failure(path);
  TRY(write_all(fd.get(), bytes, path));
  if (::close(fd.release()) != 0) return errno_failure(path);
  return {};
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

Result<void> fill_directory(const Capture& capture, const std::string& path) {
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return errno_failure(path);
  for (const auto& [relative, entry] : capture.entries()) {
    if (auto written = write_entry(directory.get(), relative, entry); !written) {
      return fail(std::move(written).error().with_context(path));
    }
  }
  return {};
}

Result<void> make_directory(const Capture& capture, const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0) return errno_failure(path);
  return fill_directory(capture, path);
}

// Runs `write` on what `begin` has been told of; a failure leaves nothing of it.
Result<void> or_nothing(const Unfinished& unfinished, const Begin& begin, const std::function<Result<void>()>& write) {
  if (!begin(unfinished)) return fail(ErrorCode::invalid_argument, unfinished.path + ": too long a name");
  auto written = write();
  if (written) return {};
  Error error = std::move(written).error();
  if (error.os_errno != EEXIST) discard(unfinished);  // else somebody else makes it at this very moment
  if (error.os_errno == 0) return fail(std::move(error));
  return elsewhere(std::move(error));
}

// A new file or directory, made by `write` under another name.
Result<void> write_new(const std::string& path, const Begin& begin,
                       const std::function<Result<void>(const std::string&)>& write) {
  const Unfinished partial{path + ".partial"};
  if (is_there(partial.path)) {
    return fail(ErrorCode::failed_precondition,
                partial.path + ": exists already; remove it if no other neuron-gather is writing it");
  }
  return or_nothing(partial, begin, [&]() -> Result<void> {
    TRY(write(partial.path));
    return rename_new(partial.path, path);
  });
}

Result<void> write_directory(const Capture& capture, std::string path, const Begin& begin) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (!is_there(path)) {
    return write_new(path, begin, [&](const std::string& partial) { return make_directory(capture, partial); });
  }
  std::error_code error;
  const bool empty = std::filesystem::is_directory(path, error) && std::filesystem::is_empty(path, error);
  if (error) return elsewhere(error_from_errno(error.value(), path));
  if (!empty) return fail(ErrorCode::failed_precondition, path + ": is not empty; choose a new directory");
  return or_nothing({path, true}, begin, [&] { return fill_directory(capture, path); });
}

}  // namespace

bool names_archive(const std::string& path) {
  return path == "-" || path.ends_with(".tar.gz") || path.ends_with(".tgz");
}

Result<void> write_output(const Capture& capture, const std::string& path, const Begin& begin) {
  if (!names_archive(path)) return write_directory(capture, path, begin);
  if (path != "-" && is_there(path)) return there_already(path);
  TRY_ASSIGN(const std::string bytes, gzip_text(tar_text(capture, kTop)));
  if (path == "-") return write_stdout(bytes);
  return write_new(path, begin, [&](const std::string& partial) { return write_archive(bytes, partial); });
}

}  // namespace neuron::gather
