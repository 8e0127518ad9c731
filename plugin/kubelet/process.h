#pragma once

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <functional>
#include <string>

#include "agent/base/fd.h"
#include "agent/base/result.h"

// The agent's process in either mode: its signals, its log, its end.
namespace neuron::plugin {

// Why the main loop has ended.
enum class LoopEnd {
  stopped,      // by a signal
  other_agent,  // another process serves this node, or is to serve it
  dead_mount,   // a mounted directory was removed or renamed on the host: only a restart mounts the new one
  failed,
};

// Exit codes of `neuron-agent run`, as its man page lists them.
enum class ExitCode { ok = 0, failed = 1, usage = 2, other_agent = 3, dead_mount = 4 };

[[nodiscard]] ExitCode exit_code_of(LoopEnd end);

// Blocks SIGTERM, SIGINT and SIGHUP for the whole process and opens their non-blocking signalfd, so that no code runs
// in a signal handler. Call it before any other thread exists. Errors: from errno.
[[nodiscard]] Result<Fd> block_signals();

// Handles all pending signals of that signalfd: logs each, calls `rescan` for a SIGHUP. True: the process has to stop.
[[nodiscard]] bool asked_to_stop(int signals, const std::function<void()>& rescan);

// The name of the pod that this process runs in, by the variable POD_NAME, else the host's name, which in a pod is its
// own unless it has hostNetwork; "" = in none.
[[nodiscard]] std::string own_pod_name();

// Destination of log lines: one write per line, of at most PIPE_BUF bytes (the rest is cut), control characters shown
// as \xNN. A stuck reader holds up neither logging nor the end of the program: the first line that finds no room waits
// a second for it, and all others are dropped at once until there is room again. The next line is then preceded by the
// number of lost ones.
//
// `fd` is not owned. One thread: the asynchronous logger's.
class StderrSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit StderrSink(int fd) : fd_(fd) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  [[nodiscard]] bool has_room() const;
  void put(const spdlog::details::log_msg& message);

  int fd_;
  std::uint64_t lost_ = 0;  // lines since there was room
};

}  // namespace neuron::plugin
