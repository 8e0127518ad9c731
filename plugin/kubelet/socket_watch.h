#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/result.h"

namespace neuron::plugin {

// Watches the kubelet's device-plugins directory: sockets that come and go, the checkpoint that is renamed into place.
// One thread.
class SocketWatch {
 public:
  struct Event {
    // directory_moved: renamed, though its path may still lead to it, through a mount.
    enum class Kind { appeared, vanished, directory_moved, directory_lost } kind{};
    std::string name;  // file name; empty for what concerns the directory itself
  };

  // Errors: not_found when the directory does not exist.
  [[nodiscard]] static Result<SocketWatch> open(const std::string& directory);

  // What became of the directory that is watched; a few calls of stat. inotify does not tell that it was removed while
  // something keeps it in use: an open descriptor such as our lock, or a bind mount.
  enum class State {
    stands,    // it is the one at its path
    replaced,  // another one is there
    gone,      // none is there
    dead,      // it was removed, but the path still leads to it: a bind mount keeps it, and nothing can be made in it
  };
  [[nodiscard]] State state() const;

  [[nodiscard]] int fd() const { return inotify_.get(); }  // readable when events wait
  [[nodiscard]] std::vector<Event> read_events();          // never blocks; a queue overflow shows as directory_lost

 private:
  struct Place {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  [[nodiscard]] static std::optional<Place> place_of(const std::string& directory);

  SocketWatch(Fd inotify, std::string directory, std::optional<Place> place)
      : inotify_(std::move(inotify)), directory_(std::move(directory)), place_(place) {}
  Fd inotify_;
  std::string directory_;
  std::optional<Place> place_;
};

}  // namespace neuron::plugin
