#pragma once

#include <memory>
#include <string>
#include <thread>

#include "agent/base/fd.h"
#include "agent/base/result.h"

namespace neuron::sim {

// mkdir -p, mode 0750 for what is new. Errors: from errno.
[[nodiscard]] Result<void> make_directory(const std::string& path);

// Deletes every socket directly in `dir` and leaves all else, as the kubelet does when it starts. Errors: from errno.
[[nodiscard]] Result<void> wipe_sockets(const std::string& dir);

// Is somebody listening on this unix socket? False for a stale or missing one.
[[nodiscard]] bool is_listening(const std::string& socket_path);

// invalid_argument when the path does not fit a unix socket address (107 bytes).
[[nodiscard]] Result<void> check_socket_path(const std::string& path);

// A unix socket that accepts every connection and closes it at once. Its thread ends in the destructor, which also
// unlinks the socket.
class ClosingSocket {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ClosingSocket>> open(const std::string& path);
  ~ClosingSocket();
  ClosingSocket(const ClosingSocket&) = delete;
  ClosingSocket& operator=(const ClosingSocket&) = delete;

 private:
  ClosingSocket(std::string path, Fd listener, Fd stop);
  const std::string path_;
  const Fd listener_, stop_;  // stop_: an eventfd
  std::thread thread_;
};

}  // namespace neuron::sim
