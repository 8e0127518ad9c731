#include "plugin/kubelet/signals.h"

#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

namespace neuron::plugin {

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
