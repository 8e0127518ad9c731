#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "agent/base/result.h"
#include "agent/model/resource.h"
#include "agent/rpc/calls.h"

namespace neuron::plugin {

// Registers resources with the kubelet behind one socket. One thread.
class KubeletRegistration {
 public:
  using Done = std::function<void(std::optional<Error>)>;  // once, on a gRPC thread; nullopt = registered

  explicit KubeletRegistration(std::string kubelet_socket) : socket_(std::move(kubelet_socket)) {}

  // Registers `resource` with the kubelet, served at `endpoint`, a file name beside its socket. The kubelet dials back
  // before it answers, so the plugin must be serving. Never blocks. A new connection each time.
  void start(model::Resource resource, const std::string& endpoint, std::chrono::milliseconds deadline, Done done);

  void close_finished() { calls_.drop_finished(); }  // the connections of registrations that are done

 private:
  std::string socket_;
  rpc::CallKeeper calls_;
};

}  // namespace neuron::plugin
