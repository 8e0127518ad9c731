#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/workers.h"
#include "plugin/kubelet/process.h"
#include "plugin/kubelet/socket_file.h"

namespace neuron::plugin {

// Watches one of the kubelet's directories: sockets that come and go, the checkpoint that is renamed into place. Where
// the kernel grants no inotify instance or watch (fs.inotify.max_user_instances, max_user_watches), the directory is
// compared with what it was at each read_events() instead, until inotify is granted. One thread.
class SocketWatch {
 public:
  // Interval of read_events() while there is no inotify.
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
    unread,    // the path cannot be followed now: EACCES, EIO, ENOMEM and the like
    dead,      // it was removed, but the path still leads to it: a bind mount keeps it, and nothing can be made in it
  };
  [[nodiscard]] State state() const;
  [[nodiscard]] bool may_stand() const;  // stands, or unread

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
  [[nodiscard]] static std::optional<Place> place_of(const std::string& directory);  // nullopt: errno says why

  // Identifies a file, so that one that was renamed over another is noticed.
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

// The kubelet's device-plugins directory: waits until it is there, locks it, reports what happens in it, and begins
// again when it is replaced. Where it hangs, a call waits for kBudget, further ones not at all until it answers. One
// thread.
class KubeletDirectory {
 public:
  // Changes since the last call.
  struct Changes {
    bool usable = false;            // it is watched and locked: the first one, another than before, or after it hung
    bool kubelet_appeared = false;  // its socket
    int checkpoints_written = 0;
    std::vector<SocketWatch::Event> sockets;  // other files that appeared or vanished, in order; all when usable
    std::optional<LoopEnd> end{};  // the agent has to end: another one holds the lock, the mount is dead, or it failed
  };

  // Behaviour while another agent of this mode holds the lock.
  enum class WhenServed {
    end,
    wait,  // for its end, as long as this one has not served: from then on it has sockets of its own
  };

  static constexpr std::chrono::milliseconds kBudget{1000};  // of one access to the directory

  // `calls`: for all that may hang. Both must outlive it.
  KubeletDirectory(std::string path, const Clock& clock, const BoundedCalls& calls,
                   WhenServed when_served = WhenServed::end);

  [[nodiscard]] Changes read_changes();
  [[nodiscard]] int fd() const { return watch_ ? watch_->fd() : -1; }  // readable when read_changes() has any
  [[nodiscard]] std::optional<SteadyTime> next() const;                // when to ask again anyway
  [[nodiscard]] const std::string& path() const { return path_; }
  // Time waited for the other agent; nullopt: it does not wait.
  [[nodiscard]] std::optional<std::chrono::milliseconds> waited() const;

 private:
  struct Opened;
  [[nodiscard]] static Opened open_at(const std::string& path);
  void open(Changes& changes);
  [[nodiscard]] std::optional<LoopEnd> take_lock(Result<InstanceLock> lock);
  void read(Changes& changes);
  [[nodiscard]] std::vector<SocketWatch::Event> read_events();
  [[nodiscard]] bool may_stand() const;
  void lose();
  void say_means();
  [[nodiscard]] LoopEnd dead_mount(std::string_view what) const;

  const std::string path_;
  const Clock& clock_;
  const BoundedCalls& calls_;
  WhenServed when_served_;
  std::optional<SteadyTime> waits_since_;  // for the agent that holds the lock
  std::optional<InstanceLock> lock_;
  std::shared_ptr<SocketWatch> watch_;   // shared with calls that hang
  bool has_hung_ = false;                // since it was last reported as usable
  std::string error_;                    // as last logged
  std::optional<SteadyTime> open_at_;    // when to open it, while it is not watched
  std::optional<SteadyTime> stands_at_;  // when to check that it is still the one at its path, while it is watched
  std::string polling_because_;          // as last logged
};

}  // namespace neuron::plugin
