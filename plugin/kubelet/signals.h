#pragma once

#include <functional>

namespace neuron::plugin {

// Handles SIGTERM, SIGINT and SIGHUP. `signals`: a signalfd, non-blocking, for SIGTERM, SIGINT and SIGHUP. True: end,
// as the log says. `rescan` is called for a SIGHUP.
[[nodiscard]] bool asked_to_stop(int signals, const std::function<void()>& rescan);

}  // namespace neuron::plugin
