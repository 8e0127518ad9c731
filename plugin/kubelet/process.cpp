#include "plugin/kubelet/process.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "agent/base/parse.h"

namespace neuron::plugin {

ExitCode exit_code_of(LoopEnd end) {
  switch (end) {
    case LoopEnd::stopped:
      return ExitCode::ok;
    case LoopEnd::other_agent:
      return ExitCode::other_agent;
    case LoopEnd::dead_mount:
      return ExitCode::dead_mount;
    case LoopEnd::failed:
      break;
  }
  return ExitCode::failed;
}

Result<Fd> block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return fail(error_from_errno(errno, "sigprocmask"));
  Fd fd(signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!fd.valid()) return fail(error_from_errno(errno, "signalfd"));
  return fd;
}

bool asked_to_stop(int signals, const std::function<void()>& rescan) {
  signalfd_siginfo info{};
  while (::read(signals, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    if (info.ssi_signo != SIGHUP) {
      spdlog::info("stopping signal={}", info.ssi_signo);
      return true;
    }
    spdlog::info("rescanning signal=SIGHUP");
    rescan();
  }
  return false;
}

std::string own_pod_name() {
  const char* pod = ::getenv("POD_NAME");
  if (pod != nullptr && *pod != '\0') return pod;
  if (::getenv("KUBERNETES_SERVICE_HOST") == nullptr) return "";
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

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
