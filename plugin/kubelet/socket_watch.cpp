#include "plugin/kubelet/socket_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace neuron::plugin {
namespace {

// The user's share of inotify, the process' descriptors or the kernel's memory; not the directory.
bool is_exhausted(const Error& error) {
  return error.os_errno == EMFILE || error.os_errno == ENFILE || error.os_errno == ENOMEM || error.os_errno == ENOSPC;
}

}  // namespace

Result<SocketWatch> SocketWatch::open(const std::string& directory, Means means) {
  const auto place = place_of(directory);
  if (!place) return fail(error_from_errno(errno, "watching " + directory));
  SocketWatch watch(directory, place);
  const Result<void> begun =
      means == Means::inotify ? watch.begin_inotify() : fail(error_from_errno(EMFILE, "inotify"));
  if (begun) return watch;
  if (!is_exhausted(begun.error())) return fail(begun.error());
  watch.polling_because_ = begun.error().message;
  if (auto files = watch.list()) watch.files_ = *std::move(files);
  return watch;
}

// Errors: those of is_exhausted() while the kernel grants none; others for the directory.
Result<void> SocketWatch::begin_inotify() {
  Fd inotify(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify.valid()) {
    return fail(error_from_errno(
        errno, "no inotify instance left for this user; raise the sysctl fs.inotify.max_user_instances"));
  }
  constexpr std::uint32_t kMask =
      IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  if (inotify_add_watch(inotify.get(), directory_.c_str(), kMask) < 0) {
    const int reason = errno;
    const bool no_watch = reason == ENOSPC || reason == ENOMEM;
    return fail(error_from_errno(
        reason, no_watch ? "no inotify watch left for this user; raise the sysctl fs.inotify.max_user_watches"
                         : "watching " + directory_));
  }
  inotify_ = std::move(inotify);
  polling_because_.clear();
  return {};
}

std::optional<SocketWatch::Place> SocketWatch::place_of(const std::string& directory) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return std::nullopt;
  return Place{info.st_dev, info.st_ino};
}

SocketWatch::State SocketWatch::state() const {
  struct stat info {};
  if (::stat(directory_.c_str(), &info) != 0) return State::gone;
  if (place_ != Place{info.st_dev, info.st_ino}) return State::replaced;
  return info.st_nlink == 0 ? State::dead : State::stands;
}

std::optional<SocketWatch::Files> SocketWatch::list() const {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  Files files;
  std::error_code error;
  std::filesystem::directory_iterator at(directory_, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    struct stat info {};
    if (::lstat(at->path().c_str(), &info) != 0) continue;
    files[at->path().filename()] = {info.st_ino, info.st_ctim.tv_sec * kNanoseconds + info.st_ctim.tv_nsec};
  }
  if (error) return std::nullopt;
  return files;
}

// Of several writes of one file since the last comparison one is seen.
void SocketWatch::compare(std::vector<Event>& events) {
  if (place_of(directory_) != place_) return events.push_back({Event::Kind::directory_lost, ""});
  auto now = list();
  if (!now) return;
  for (const auto& [name, stamp] : files_) {
    if (!now->contains(name)) events.push_back({Event::Kind::vanished, name});
  }
  for (const auto& [name, stamp] : *now) {
    const auto before = files_.find(name);
    if (before == files_.end() || before->second != stamp) events.push_back({Event::Kind::appeared, name});
  }
  files_ = *std::move(now);
}

std::vector<SocketWatch::Event> SocketWatch::read_events() {
  std::vector<Event> events;
  if (inotify_.valid()) {
    read_inotify(events);
    return events;
  }
  static_cast<void>(begin_inotify());  // before the list, so that nothing is missed between the two
  compare(events);
  return events;
}

void SocketWatch::read_inotify(std::vector<Event>& events) {
  alignas(inotify_event) std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) return;
    for (std::size_t at = 0; at + sizeof(inotify_event) <= static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof(event));
      const char* name = buffer.data() + at + sizeof(event);
      at += sizeof(event) + event.len;
      if ((event.mask & IN_MOVE_SELF) != 0) {
        events.push_back({Event::Kind::directory_moved, ""});
      } else if ((event.mask & (IN_DELETE_SELF | IN_IGNORED | IN_Q_OVERFLOW | IN_UNMOUNT)) != 0) {
        events.push_back({Event::Kind::directory_lost, ""});
      } else if (event.len > 0) {
        const bool appeared = (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0;
        events.push_back(
            {appeared ? Event::Kind::appeared : Event::Kind::vanished, std::string(name, strnlen(name, event.len))});
      }
    }
  }
}

}  // namespace neuron::plugin
