#include "agent/base/standard_streams.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <initializer_list>

namespace neuron {

void open_standard_streams() {
  std::signal(SIGCHLD, SIG_DFL);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free descriptor, which is this one. Opened for the direction that nobody uses.
    static_cast<void>(::open("/dev/null", (stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_NOCTTY));
  }
}

DescriptorLimit raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {};
  const rlim_t before = limit.rlim_cur;
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, kMostDescriptors);  // RLIM_INFINITY is the largest number
  if (wanted <= before) return {before, before};
  limit.rlim_cur = wanted;
  const bool raised = ::setrlimit(RLIMIT_NOFILE, &limit) == 0;
  return {before, raised ? wanted : before};
}

}  // namespace neuron
