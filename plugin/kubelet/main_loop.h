#pragma once

#include <functional>

#include "agent/base/fd.h"
#include "agent/base/result.h"

// The main loop of either mode: its signals and its end. SIGTERM, SIGINT and SIGHUP
// are read from a descriptor by the loop: no code runs in a signal handler.
namespace neuron::plugin {

// Why the main loop has ended.
enum class LoopEnd {
  stopped,      // by a signal
  other_agent,  // another process serves this node, or is to serve it
  dead_mount,   // a mounted directory was removed on the host: only a restart mounts the new one
  failed,
};

// Blocks them for the whole process and opens their non-blocking signalfd. Call it before any other thread exists.
// Errors: from errno.
[[nodiscard]] Result<Fd> block_signals();

// Handles all pending signals of that signalfd: logs each, calls `rescan` for a SIGHUP. True: the process has to stop.
[[nodiscard]] bool asked_to_stop(int signals, const std::function<void()>& rescan);

}  // namespace neuron::plugin
