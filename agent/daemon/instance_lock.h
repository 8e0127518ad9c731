#pragma once

#include <string>

#include "agent/base/fd.h"
#include "agent/base/result.h"

namespace neuron::daemon {

// Held by the one agent that serves a kubelet directory, until its process ends; a crash releases it. The kubelet
// deletes only sockets there, so the file survives its restarts.
class InstanceLock {
 public:
  // Errors: failed_precondition when another process holds it, naming its pid; not_found without the directory.
  [[nodiscard]] static Result<InstanceLock> take(const std::string& directory);

 private:
  explicit InstanceLock(Fd file) : file_(std::move(file)) {}
  Fd file_;
};

}  // namespace neuron::daemon
