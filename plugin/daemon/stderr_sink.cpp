#include "plugin/daemon/stderr_sink.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>
#include <string_view>

#include "agent/base/parse.h"

namespace neuron::plugin {

// For a pipe: room for PIPE_BUF bytes, so that a write of no more does not block.
bool StderrSink::has_room() const {
  constexpr int kTimeoutMs = 1000;
  pollfd stream{fd_, POLLOUT, 0};
  const int ready = ::poll(&stream, 1, lost_ == 0 ? kTimeoutMs : 0);
  return ready > 0 || (ready < 0 && errno == EINTR);
}

void StderrSink::put(const spdlog::details::log_msg& message) {
  constexpr std::size_t kMaxLine = PIPE_BUF - 16;  // printable() may add one escape, its "..." and the line's end
  spdlog::memory_buf_t text;
  formatter_->format(message, text);
  std::string_view line(text.data(), text.size());
  if (line.ends_with('\n')) line.remove_suffix(1);
  const std::string shown = printable_line(std::string(line), kMaxLine) + '\n';
  while (::write(fd_, shown.data(), shown.size()) < 0 && errno == EINTR) {
  }
}

void StderrSink::sink_it_(const spdlog::details::log_msg& message) {
  if (!has_room()) {
    ++lost_;
    return;
  }
  if (lost_ > 0) {
    const std::string words = std::to_string(lost_) + " log lines lost: standard error was not read";
    put(spdlog::details::log_msg(message.logger_name, spdlog::level::warn, words));
    lost_ = 0;
    if (!has_room()) {
      lost_ = 1;
      return;
    }
  }
  put(message);
}

}  // namespace neuron::plugin
