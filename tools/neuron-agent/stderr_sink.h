#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <mutex>

namespace neuron::agent {

// Where log lines go: one write per line, of at most PIPE_BUF bytes (the rest is cut), with whatever a terminal would
// obey shown as \xNN. Nobody may be reading: the first line that finds no room waits a second for it, and until there
// is room again all others are dropped at once, so that neither logging nor the end of the program is held up. The
// first line after that is preceded by one that says how many are missing.
//
// `fd` is not owned. For the logger's thread.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
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

}  // namespace neuron::agent
