#include "plugin/kubelet/socket_watch.h"

#include <sys/inotify.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace neuron::plugin {

Result<SocketWatch> SocketWatch::open(const std::string& directory) {
  Fd inotify(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify.valid()) return fail(error_from_errno(errno, "inotify"));
  constexpr std::uint32_t kMask =
      IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
  if (inotify_add_watch(inotify.get(), directory.c_str(), kMask) < 0) {
    return fail(error_from_errno(errno, "watching " + directory));
  }
  return SocketWatch(std::move(inotify), directory, place_of(directory));
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

std::vector<SocketWatch::Event> SocketWatch::read_events() {
  std::vector<Event> events;
  alignas(inotify_event) std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) return events;
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
