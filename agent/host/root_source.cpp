#include "agent/host/root_source.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "agent/base/fd.h"
#include "agent/base/parse.h"

namespace neuron::host {
namespace {

constexpr std::size_t kReadBytes = 65536;

struct FreeArchive {
  void operator()(struct archive* archive) const { ::archive_read_free(archive); }
};
using Archive = std::unique_ptr<struct archive, FreeArchive>;

tl::unexpected<Error> corrupt(std::string_view what) {
  return fail(ErrorCode::data_corrupt, std::string(what));
}

tl::unexpected<Error> corrupt(std::string_view path, std::string_view reason) {
  return corrupt("entry \"" + printable(path, 100) + "\" " + std::string(reason));
}

tl::unexpected<Error> write_error(std::string_view path) {
  auto error = error_from_errno(errno, "writing \"" + printable(path, 100) + "\" to the temporary directory");
  error.code = error.os_errno == ENAMETOOLONG ? ErrorCode::data_corrupt : ErrorCode::internal;
  return fail(std::move(error));
}

std::string reason_of(struct archive* archive) {
  const char* text = ::archive_error_string(archive);
  return text == nullptr ? "unreadable" : printable(text, 200);
}

// "./a//b/" -> "a/b". Errors: names that an archive may not have.
Result<std::string> clean_path(std::string_view raw, const ArchiveBounds& bounds) {
  const std::string_view name = raw;
  if (raw.empty()) return corrupt("an entry has no name");
  if (raw.size() > bounds.path_bytes) return corrupt(raw, "has too long a path");
  if (raw.front() == '/') return corrupt(raw, "has an absolute path");
  std::string path;
  std::size_t depth = 0;
  while (!raw.empty()) {
    const auto slash = std::min(raw.find('/'), raw.size());
    const std::string_view part = raw.substr(0, slash);
    raw.remove_prefix(std::min(slash + 1, raw.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") return corrupt(name, "leads out of the archive");
    if (++depth > bounds.depth) return corrupt(name, "lies in too many folders");
    if (!path.empty()) path += '/';
    path += part;
  }
  return path;
}

// A relative link in the folder of `from` equivalent to the absolute `target` for a process whose root is `root` ("" or
// a folder at the top).
std::string relative_target(std::string_view from, std::string_view root, std::string_view target) {
  const std::string_view inner = root.empty() ? from : from.substr(root.size() + 1);
  std::string text;
  for (auto ups = std::ranges::count(inner, '/'); ups > 0; --ups) text += "../";
  const auto first = target.find_first_not_of('/');
  if (first != std::string_view::npos) text += target.substr(first);
  return text.empty() ? "." : text;
}

class Unpacker {
 public:
  Unpacker(struct archive* archive, int directory, const ArchiveBounds& bounds)
      : archive_(archive), directory_(directory), bounds_(bounds) {}

  Result<std::string> run() {
    TRY(read_entries());
    if (seen_ == 0) return corrupt("the archive is empty");
    const std::string root = choose_root();
    TRY(make_links(root));
    TRY(check_links(root));
    return root;
  }

 private:
  Result<void> spend(std::uint64_t bytes) {
    spent_ += bytes;
    if (spent_ <= bounds_.total_bytes) return {};
    return corrupt("holds more than " + std::to_string(bounds_.total_bytes >> 20U) + " MiB");
  }

  Result<void> read_entries() {
    struct archive_entry* entry = nullptr;
    for (;;) {
      const int status = ::archive_read_next_header(archive_, &entry);
      if (status == ARCHIVE_EOF) return {};
      if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
        return corrupt(seen_ == 0 ? "neither a directory nor a tar or tar.gz archive (" + reason_of(archive_) + ')'
                                  : "the archive is damaged: " + reason_of(archive_));
      }
      if (++seen_ > bounds_.entries) return corrupt("holds more than " + std::to_string(bounds_.entries) + " entries");
      TRY(unpack(entry));
    }
  }

  Result<void> unpack(struct archive_entry* entry) {
    const char* name = ::archive_entry_pathname(entry);
    if (name == nullptr) return corrupt("an entry has no readable name");
    TRY_ASSIGN(const std::string path, clean_path(name, bounds_));
    TRY(spend(path.size()));
    const bool folder = ::archive_entry_filetype(entry) == AE_IFDIR;
    if (path.empty()) {
      if (folder) return {};  // the "./" that tar writes first
      return corrupt(name, "would replace the root");
    }
    const auto size = ::archive_entry_size(entry);
    if (size < 0 || static_cast<std::uint64_t>(size) > bounds_.file_bytes) {
      return corrupt(path, "is larger than " + std::to_string(bounds_.file_bytes) + " bytes");
    }
    tops_.emplace(path.substr(0, path.find('/')));
    if (!folder && path.find('/') == std::string::npos) top_file_ = true;
    return store(entry, path);
  }

  Result<void> store(struct archive_entry* entry, const std::string& path) {
    if (const char* target = ::archive_entry_hardlink(entry); target != nullptr) return repeat_file(path, target);
    switch (::archive_entry_filetype(entry)) {
      case AE_IFDIR:
        return make_folders(path);
      case AE_IFREG:
      case AE_IFCHR:
      case AE_IFBLK:
        return write_file(path);
      case AE_IFLNK: {
        const char* target = ::archive_entry_symlink(entry);
        if (target == nullptr || *target == '\0') return corrupt(path, "is a link to nothing");
        TRY(spend(std::string_view(target).size()));
        if (links_.emplace(path, target).second) return {};
        return corrupt(path, "is there twice");
      }
      default:
        return {};  // FIFOs, sockets and unknown types
    }
  }

  // Each folder of the path, existing or not. No link exists yet.
  Result<void> make_folders(const std::string& path) {
    for (std::size_t end = 0; end != std::string::npos;) {
      end = path.find('/', end + 1);
      const std::string folder = path.substr(0, end);
      if (::mkdirat(directory_, folder.c_str(), 0700) == 0) continue;
      if (errno != EEXIST) return write_error(folder);
      struct stat info {};
      if (::fstatat(directory_, folder.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return write_error(folder);
      if (!S_ISDIR(info.st_mode)) return corrupt(folder, "is both a file and a folder");
    }
    return {};
  }

  Result<void> make_folders_above(const std::string& path) {
    const auto slash = path.rfind('/');
    return slash == std::string::npos ? Result<void>() : make_folders(path.substr(0, slash));
  }

  Result<void> write_file(const std::string& path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    Fd fd(::openat(directory_, path.c_str(), kFlags, 0600));
    if (!fd.valid() && (errno == ENOENT || errno == ENOTDIR)) {
      TRY(make_folders_above(path));
      fd = Fd(::openat(directory_, path.c_str(), kFlags, 0600));
    }
    if (!fd.valid() && errno == EEXIST) return corrupt(path, "is there twice");
    if (!fd.valid()) return write_error(path);
    return copy_content(fd.get(), path);
  }

  Result<void> copy_content(int fd, const std::string& path) {
    std::array<char, kReadBytes> buffer;  // NOLINT: archive_read_data() fills it
    std::uint64_t written = 0;
    for (;;) {
      const auto count = ::archive_read_data(archive_, buffer.data(), buffer.size());
      if (count == 0) return {};
      if (count < 0) return corrupt(path, "is damaged: " + reason_of(archive_));
      written += static_cast<std::uint64_t>(count);
      // A sparse file may be larger than in its header.
      if (written > bounds_.file_bytes) {
        return corrupt(path, "is larger than " + std::to_string(bounds_.file_bytes) + " bytes");
      }
      TRY(spend(static_cast<std::uint64_t>(count)));
      errno = ENOSPC;
      if (::write(fd, buffer.data(), static_cast<std::size_t>(count)) != count) return write_error(path);
    }
  }

  // A second name of a file in the archive.
  Result<void> repeat_file(const std::string& path, const char* target) {
    TRY_ASSIGN(const std::string original, clean_path(target, bounds_));
    TRY(make_folders_above(path));
    struct stat info {};
    if (::fstatat(directory_, original.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
      return corrupt(path, "repeats a file that is not there");
    }
    if (::linkat(directory_, original.c_str(), directory_, path.c_str(), 0) == 0) return {};
    if (errno == EEXIST) return corrupt(path, "is there twice");
    return write_error(path);
  }

  std::string choose_root() const {
    constexpr std::array<std::string_view, 5> kParts = {"sys", "proc", "dev", "opt", "neuron-ioctl"};
    if (tops_.size() != 1 || top_file_) return "";
    const std::string& top = *tops_.begin();
    return std::ranges::find(kParts, top) == kParts.end() ? top : "";
  }

  Result<void> make_links(const std::string& root) {
    for (const auto& [path, target] : links_) {
      const std::string text = target.starts_with('/') ? relative_target(path, root, target) : target;
      for (auto end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1)) {
        if (links_.contains(path.substr(0, end))) return corrupt(path, "lies below a link");
      }
      TRY(make_folders_above(path));
      if (::symlinkat(text.c_str(), directory_, path.c_str()) == 0) continue;
      if (errno == EEXIST) return corrupt(path, "is both a link and something else");
      return write_error(path);
    }
    return {};
  }

  // No link may lead out of the root, a dangling one may stay. Called once all files exist.
  Result<void> check_links(const std::string& root) const {
    const Fd base(::openat(directory_, root.empty() ? "." : root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!base.valid()) return corrupt("holds neither files nor folders");
    struct open_how how {};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH;
    for (const auto& [path, target] : links_) {
      const std::string inner = root.empty() ? path : path.substr(root.size() + 1);
      constexpr int kTries = 100;  // EAGAIN: renames elsewhere, as in FsRoot
      Fd end;
      for (int i = 0; i < kTries && !end.valid() && (i == 0 || errno == EAGAIN); ++i) {
        end = Fd(static_cast<int>(::syscall(SYS_openat2, base.get(), inner.c_str(), &how, sizeof how)));
      }
      if (!end.valid() && errno == EXDEV) return corrupt(path, "is a link that leads out of the archive");
    }
    return {};
  }

  struct archive* archive_;
  int directory_;
  const ArchiveBounds& bounds_;
  std::size_t seen_ = 0;
  std::uint64_t spent_ = 0;
  std::map<std::string, std::string> links_;  // path, target
  std::set<std::string, std::less<>> tops_;   // first components
  bool top_file_ = false;                     // something other than a folder is at the top
};

// Unpacks the archive open for reading at `archive` into the empty directory open at `directory`, where no other
// process may write meanwhile; after an error the caller removes what was written. Returns the path of the archive's
// root below the directory. `name`: the archive's, for messages.
Result<std::string> unpack_archive(int archive, const std::string& name, int directory, const ArchiveBounds& bounds) {
  const Archive reader(::archive_read_new());
  if (!reader) return fail(ErrorCode::internal, name + ": no memory for an archive reader");
  ::archive_read_support_filter_gzip(reader.get());
  ::archive_read_support_format_tar(reader.get());
  ::archive_read_support_format_gnutar(reader.get());
  if (::archive_read_open_fd(reader.get(), archive, kReadBytes) != ARCHIVE_OK) {
    return fail(ErrorCode::data_corrupt,
                name + ": neither a directory nor a tar or tar.gz archive (" + reason_of(reader.get()) + ')');
  }
  auto root = Unpacker(reader.get(), directory, bounds).run();
  if (!root) return fail(std::move(root).error().with_context(name));
  return root;
}

}  // namespace

Result<RootSource> RootSource::open(const std::string& argument, const ArchiveBounds& bounds) {
  struct stat info {};
  if (::stat(argument.c_str(), &info) != 0) {
    return fail(error_from_errno(errno, argument.empty() ? "root directory \"\"" : argument));
  }
  if (S_ISDIR(info.st_mode)) return RootSource(argument);
  const Fd archive(::open(argument.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!archive.valid()) return fail(error_from_errno(errno, argument));
  if (::fstat(archive.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(ErrorCode::data_corrupt, argument + ": neither a directory nor a tar or tar.gz archive");
  }
  RootSource source("");
  TRY_ASSIGN(source.temporary_, TemporaryDirectory::make(temporary_place(bounds.total_bytes, bounds.entries)));
  const TemporaryDirectory& temporary = *source.temporary_;
  TRY_ASSIGN(const std::string top, unpack_archive(archive.get(), argument, temporary.handle(), bounds));
  source.directory_ = top.empty() ? temporary.path() : temporary.path() + '/' + top;
  return source;
}

}  // namespace neuron::host
