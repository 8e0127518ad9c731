#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "agent/base/error.h"
#include "plugin/resource.h"

namespace neuron::plugin {

// Tells the kubelet at `kubelet_socket` that `resource` is served at `endpoint` (a file name beside that socket). The
// kubelet dials back before it answers, so the plugin must be serving. Never blocks; `done` comes once, on a gRPC thread,
// with the error or nullopt.
void register_with_kubelet(const std::string& kubelet_socket, Resource resource, const std::string& endpoint,
                           std::chrono::milliseconds deadline, std::function<void(std::optional<Error>)> done);

}  // namespace neuron::plugin
