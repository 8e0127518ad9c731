#pragma once

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
    enum class Kind { appeared, vanished, directory_lost } kind{};
    std::string name;  // file name; empty for directory_lost
  };

  // Errors: not_found when the directory does not exist.
  [[nodiscard]] static Result<SocketWatch> open(const std::string& directory);

  [[nodiscard]] int fd() const { return inotify_.get(); }  // readable when events wait
  [[nodiscard]] std::vector<Event> read_events();          // never blocks; a queue overflow shows as directory_lost

 private:
  explicit SocketWatch(Fd inotify) : inotify_(std::move(inotify)) {}
  Fd inotify_;
};

}  // namespace neuron::plugin
