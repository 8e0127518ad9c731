#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"
#include "plugin/kubelet/instance_lock.h"
#include "plugin/kubelet/socket_watch.h"

namespace neuron::plugin {

// The kubelet's device-plugins directory: waits until it is there, locks it, tells what happens in it, and begins anew
// when it is replaced. Never blocks for longer than a local file system does. One thread.
class KubeletDirectory {
 public:
  // Why the agent has to end.
  enum class End {
    other_agent,  // which holds the lock
    dead_mount,   // the directory was removed or renamed on the host, and the mount here keeps the old one
    failed,
  };
  // What has happened since it was last asked.
  struct Changes {
    bool usable = false;            // from now on it is watched and locked: the first one, or another than before
    bool kubelet_appeared = false;  // its socket
    int checkpoints_written = 0;
    std::vector<SocketWatch::Event> sockets;  // other files that appeared or vanished, in order; all when usable
    std::optional<End> end;
  };

  KubeletDirectory(std::string path, const Clock& clock);  // `clock` must outlive it

  [[nodiscard]] Changes read_changes();
  [[nodiscard]] int fd() const { return watch_ ? watch_->fd() : -1; }  // readable when read_changes() has any
  [[nodiscard]] std::optional<SteadyTime> next() const;                // when to ask again anyway
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void open(Changes& changes);
  [[nodiscard]] std::optional<End> lock();
  void read(Changes& changes);
  void lose();
  void say_means();
  [[nodiscard]] End dead_mount(std::string_view what) const;

  const std::string path_;
  const Clock& clock_;
  std::optional<InstanceLock> lock_;
  std::optional<SocketWatch> watch_;
  std::string error_;                    // as last logged
  std::optional<SteadyTime> open_at_;    // when to open it, while it is not watched
  std::optional<SteadyTime> stands_at_;  // when to check that it is still the one at its path, while it is watched
  std::string polling_because_;          // as last logged
};

}  // namespace neuron::plugin
