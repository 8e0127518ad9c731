#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/clock.h"
#include "agent/base/workers.h"
#include "plugin/kubelet/instance_lock.h"
#include "plugin/kubelet/socket_watch.h"

namespace neuron::plugin {

// The kubelet's device-plugins directory: waits until it is there, locks it, reports what happens in it, and begins
// anew when it is replaced. Where it hangs, a call waits for kBudget, further ones not at all until it answers. One
// thread.
class KubeletDirectory {
 public:
  // Why the agent has to end.
  enum class End {
    other_agent,  // which holds the lock
    dead_mount,   // the directory was removed or renamed on the host, and the mount here keeps the old one
    failed,
  };
  // Changes since the last call.
  struct Changes {
    bool usable = false;            // it is watched and locked: the first one, another than before, or after it hung
    bool kubelet_appeared = false;  // its socket
    int checkpoints_written = 0;
    std::vector<SocketWatch::Event> sockets;  // other files that appeared or vanished, in order; all when usable
    std::optional<End> end;
  };

  static constexpr std::chrono::milliseconds kBudget{1000};  // of one access to the directory

  // `calls`: for all that may hang. Both must outlive it.
  KubeletDirectory(std::string path, const Clock& clock, const BoundedCalls& calls);

  [[nodiscard]] Changes read_changes();
  [[nodiscard]] int fd() const { return watch_ ? watch_->fd() : -1; }  // readable when read_changes() has any
  [[nodiscard]] std::optional<SteadyTime> next() const;                // when to ask again anyway
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Opened;
  [[nodiscard]] static Opened open_at(const std::string& path);
  void open(Changes& changes);
  [[nodiscard]] std::optional<End> take_lock(Result<InstanceLock> lock);
  void read(Changes& changes);
  [[nodiscard]] std::vector<SocketWatch::Event> read_events();
  [[nodiscard]] bool stands() const;
  void lose();
  void say_means();
  [[nodiscard]] End dead_mount(std::string_view what) const;

  const std::string path_;
  const Clock& clock_;
  const BoundedCalls& calls_;
  std::optional<InstanceLock> lock_;
  std::shared_ptr<SocketWatch> watch_;   // shared with calls that hang
  bool has_hung_ = false;                // since it was last reported as usable
  std::string error_;                    // as last logged
  std::optional<SteadyTime> open_at_;    // when to open it, while it is not watched
  std::optional<SteadyTime> stands_at_;  // when to check that it is still the one at its path, while it is watched
  std::string polling_because_;          // as last logged
};

}  // namespace neuron::plugin
