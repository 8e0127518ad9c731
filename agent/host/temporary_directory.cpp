#include "agent/host/temporary_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string_view>

namespace neuron::host {
namespace {

constexpr const char* kPrefix = "neuron-root-";
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

void remove_tree(const std::string& directory) {
  std::error_code ignored;
  std::filesystem::remove_all(directory, ignored);
}

// True when this handle locked the directory and the path still names it. A directory is removed under its lock only.
bool lock(const Fd& handle, const std::string& path) {
  if (!handle.valid() || ::flock(handle.get(), LOCK_EX | LOCK_NB) != 0) return false;
  struct stat held {};
  struct stat named {};
  return ::fstat(handle.get(), &held) == 0 && ::lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino && held.st_uid == ::geteuid();
}

// Removes directories of this user whose owner and cleaner were killed.
void remove_orphans(const std::string& place) {
  std::error_code error;
  std::filesystem::directory_iterator entries(place, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    if (!entries->path().filename().native().starts_with(kPrefix)) continue;
    const std::string path = entries->path().native();
    const Fd handle(::open(path.c_str(), kDirectoryFlags));
    if (lock(handle, path)) remove_tree(path);
  }
}

// The functions up to be_the_cleaner() run in a child of a process that may have threads: system calls only, no memory
// allocation.

// Removes the directory's contents. `depth` bounds the open files; archives are less deep.
void empty_directory(int directory, int depth) {
  alignas(struct dirent64) std::array<char, 4096> buffer;  // NOLINT: getdents64() fills it
  for (;;) {
    const ssize_t count = ::getdents64(directory, buffer.data(), buffer.size());
    if (count <= 0) return;
    for (ssize_t at = 0; at < count;) {
      const auto* entry = reinterpret_cast<const struct dirent64*>(buffer.data() + at);
      at += entry->d_reclen;
      const std::string_view name(entry->d_name);
      if (name == "." || name == ".." || ::unlinkat(directory, entry->d_name, 0) == 0 || depth == 0) continue;
      const int inner = ::openat(directory, entry->d_name, kDirectoryFlags);
      if (inner < 0) continue;
      empty_directory(inner, depth - 1);
      ::close(inner);
      ::unlinkat(directory, entry->d_name, AT_REMOVEDIR);
    }
  }
}

void close_all_but(int kept) {
  if (kept > 0) ::syscall(SYS_close_range, 0U, static_cast<unsigned>(kept) - 1, 0U);
  ::syscall(SYS_close_range, static_cast<unsigned>(kept) + 1, ~0U, 0U);
}

// Makes the directory, so that none exists without a cleaner, sends 0 or errno to the owner, and waits for its end.
[[noreturn]] void be_the_cleaner(int owner, const char* path) {
  constexpr int kDepth = 64;
  ::setsid();
  ::prctl(PR_SET_NAME, "neuron-cleanup");
  close_all_but(owner);
  static_cast<void>(!::chdir("/"));
  int error = ::mkdir(path, 0700) == 0 ? 0 : errno;
  const int directory = error == 0 ? ::open(path, kDirectoryFlags) : -1;
  if (error == 0 && directory < 0) {
    error = errno;
    ::rmdir(path);
  }
  static_cast<void>(::send(owner, &error, sizeof error, MSG_NOSIGNAL));
  if (error != 0) ::_exit(1);
  char byte = 0;
  while (::read(owner, &byte, 1) < 0 && errno == EINTR) {
  }
  empty_directory(directory, kDepth);
  ::rmdir(path);
  ::_exit(0);
}

// Blocks all signals in its scope.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

// An unpredictable name.
std::string random_name() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string name = kPrefix;
  for (int i = 0; i < 10; ++i) name += kLetters[random() % kLetters.size()];
  return name;
}

}  // namespace

std::string temporary_place(std::uint64_t bytes, std::uint64_t entries) {
  const char* chosen = std::getenv("TMPDIR");
  if (chosen != nullptr && *chosen == '/') return chosen;
  constexpr const char* kMemory = "/dev/shm";
  constexpr std::uint64_t kBlock = 4096;  // a file takes at least one
  struct statvfs room {};
  const bool fits = ::statvfs(kMemory, &room) == 0 && room.f_bavail * room.f_frsize >= bytes + entries * kBlock &&
                    room.f_favail >= entries;
  return fits && ::access(kMemory, W_OK | X_OK) == 0 ? kMemory : "/tmp";
}

// 0 or errno.
int TemporaryDirectory::start_cleaner() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return errno;
  const Fd owner(ends[0]);
  cleaner_ = Fd(ends[1]);
  {
    const SignalsBlocked blocked;  // the child keeps them blocked
    cleaner_pid_ = ::fork();
    if (cleaner_pid_ == 0) be_the_cleaner(owner.get(), path_.c_str());
  }
  if (cleaner_pid_ < 0) return errno;
  int error = 0;
  ssize_t count = 0;
  while ((count = ::recv(cleaner_.get(), &error, sizeof error, MSG_WAITALL)) < 0 && errno == EINTR) {
  }
  return count == sizeof error ? error : EIO;
}

Result<std::unique_ptr<TemporaryDirectory>> TemporaryDirectory::make(const std::string& place) {
  remove_orphans(place);
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::unique_ptr<TemporaryDirectory> made(new TemporaryDirectory(place + '/' + random_name()));
    if (const int error = made->start_cleaner(); error != 0) {
      made->end_cleaner();
      made->path_.clear();
      if (error == EEXIST) continue;
      auto failure = error_from_errno(error, place + ": no temporary directory; set TMPDIR");
      failure.code = ErrorCode::internal;
      return fail(std::move(failure));
    }
    made->handle_ = Fd(::open(made->path_.c_str(), kDirectoryFlags));
    if (lock(made->handle_, made->path_)) return made;
    // Another process took it for an orphan before it was locked.
  }
  return fail(ErrorCode::unavailable, place + ": temporary directories vanish as they are made");
}

void TemporaryDirectory::end_cleaner() noexcept {
  if (cleaner_pid_ <= 0) return;
  // A byte, since a child of this process may hold the other end open.
  static_cast<void>(::send(cleaner_.get(), "", 1, MSG_NOSIGNAL));
  cleaner_.reset();
  while (::waitpid(cleaner_pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  cleaner_pid_ = -1;
}

// The cleaner removes it, also when this process is killed meanwhile.
TemporaryDirectory::~TemporaryDirectory() {
  if (path_.empty()) return;
  end_cleaner();
  remove_tree(path_);  // nothing is left, unless the cleaner was killed
}

}  // namespace neuron::host
