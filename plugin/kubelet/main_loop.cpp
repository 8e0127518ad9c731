#include "plugin/kubelet/main_loop.h"

#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace neuron::plugin {

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

}  // namespace neuron::plugin
