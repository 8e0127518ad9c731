#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/result.h"

namespace neuron::plugin {

// Watches one of the kubelet's directories: sockets that come and go, the checkpoint that is renamed into place. Where
// the kernel grants no inotify instance or watch (fs.inotify.max_user_instances, max_user_watches), the directory is
// compared with what it was at each read_events() instead, until inotify is granted. One thread.
class SocketWatch {
 public:
  // How often to call read_events() while there is no inotify.
  static constexpr std::chrono::milliseconds kPollEvery{100};

  struct Event {
    // directory_moved: renamed, though its path may still lead to it, through a mount.
    enum class Kind { appeared, vanished, directory_moved, directory_lost } kind{};
    std::string name;  // file name; empty for what concerns the directory itself
  };

  enum class Means { inotify, polling };

  // `means`: polling does without inotify until the first read_events(). Errors: not_found when the directory does not
  // exist.
  [[nodiscard]] static Result<SocketWatch> open(const std::string& directory, Means means = Means::inotify);

  // State of the watched directory; a few calls of stat, also beside read_events(). inotify does not report its removal
  // while something keeps it in use: an open descriptor such as the lock, or a bind mount.
  enum class State {
    stands,    // it is the one at its path
    replaced,  // another one is there
    gone,      // none is there
    dead,      // it was removed, but the path still leads to it: a bind mount keeps it, and nothing can be made in it
  };
  [[nodiscard]] State state() const;

  [[nodiscard]] int fd() const { return inotify_.get(); }  // readable when events wait; -1: poll
  // A queue overflow shows as directory_lost. Never blocks, but on the directory while there is no inotify.
  [[nodiscard]] std::vector<Event> read_events();

  // Why there is no inotify, and which sysctl to raise, for the log; "" while there is.
  [[nodiscard]] const std::string& polling_because() const { return polling_because_; }

 private:
  struct Place {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  [[nodiscard]] static std::optional<Place> place_of(const std::string& directory);

  // Of a file, so that one that was renamed over another is noticed.
  struct Stamp {
    ino_t inode = 0;
    std::int64_t changed_ns = 0;  // st_ctim
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  using Files = std::map<std::string, Stamp>;

  SocketWatch(std::string directory, std::optional<Place> place) : directory_(std::move(directory)), place_(place) {}
  [[nodiscard]] Result<void> begin_inotify();
  [[nodiscard]] std::optional<Files> list() const;  // nullopt: it cannot be read now
  void compare(std::vector<Event>& events);
  void read_inotify(std::vector<Event>& events);

  Fd inotify_;
  std::string directory_;
  std::optional<Place> place_;
  std::string polling_because_;
  Files files_;  // as of the newest comparison, while there is no inotify
};

}  // namespace neuron::plugin
