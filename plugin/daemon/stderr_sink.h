#pragma once

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

#include <cstdint>

namespace neuron::plugin {

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
