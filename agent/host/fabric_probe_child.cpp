#include "agent/host/fabric_probe_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "agent/base/error.h"
#include "agent/base/fd.h"

namespace neuron::host {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kToDie{1000};  // after SIGKILL; only a driver can hold a process longer

struct Pipe {
  Fd read;
  Fd write;
};

// Empty descriptors and errno when there is no more to be had.
Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {Fd(ends[0]), Fd(ends[1])};
}

[[noreturn]] void be_the_child(const std::function<int(int)>& body, pid_t parent, int output, int errors) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent died before the line above
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE, SIGTERM, SIGINT, SIGHUP}) {
    std::signal(number, SIG_DFL);
  }
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing.valid()) ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(errors, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::_exit(body(output));
}

// Takes what is there; closes `fd` at its end. Beyond the bound bytes are read and dropped, so that nobody blocks.
void drain(Fd& fd, std::string& into, std::size_t max_bytes) {
  std::array<char, 8192> buffer{};
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return fd.reset();
    const std::size_t room = max_bytes - std::min(max_bytes, into.size());
    into.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
  }
}

int milliseconds_until(SteadyClock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 1'000'000));
}

// True when the child ended before `until`; its words are taken meanwhile and, once it ended, to the last.
bool follow(const Fd& pidfd, Fd& output, Fd& errors, ChildOutcome& outcome, SteadyClock::time_point until,
            std::size_t max_bytes) {
  for (;;) {
    std::array<pollfd, 3> fds = {{{pidfd.get(), POLLIN, 0}, {output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), milliseconds_until(until));
    if (ready < 0 && errno != EINTR) return false;
    if (output.valid()) drain(output, outcome.output, max_bytes);
    if (errors.valid()) drain(errors, outcome.errors, max_bytes);
    if (ready > 0 && (fds[0].revents & POLLIN) != 0) return true;
    if (SteadyClock::now() >= until) return false;
  }
}

void reap(pid_t child, ChildOutcome& outcome) {
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) != child) return;
  if (outcome.end == ChildOutcome::End::out_of_time) return;
  if (WIFSIGNALED(status)) {
    outcome.end = ChildOutcome::End::killed;
    outcome.signal = WTERMSIG(status);
  } else {
    outcome.end = ChildOutcome::End::exited;
    outcome.status = WEXITSTATUS(status);
  }
}

ChildOutcome not_started(std::string_view what) {
  ChildOutcome outcome;
  outcome.errors = error_from_errno(errno, what).message;
  return outcome;
}

}  // namespace

bool write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(fd, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<std::size_t>(wrote);
  }
  return true;
}

ChildOutcome run_in_child(const std::function<int(int)>& body, std::chrono::milliseconds budget,
                          std::size_t max_bytes) {
  Pipe output = make_pipe();
  Pipe errors = make_pipe();
  if (!output.read.valid() || !errors.read.valid()) return not_started("pipe");
  ::fcntl(output.read.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(errors.read.get(), F_SETFL, O_NONBLOCK);
  const auto until = SteadyClock::now() + budget;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return not_started("fork");
  if (child == 0) be_the_child(body, parent, output.write.get(), errors.write.get());
  output.write.reset();
  errors.write.reset();
  const Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  ChildOutcome outcome;
  if (!pidfd.valid()) outcome = not_started("pidfd_open");
  const bool ended = pidfd.valid() && follow(pidfd, output.read, errors.read, outcome, until, max_bytes);
  if (!ended) {
    if (pidfd.valid()) outcome.end = ChildOutcome::End::out_of_time;
    ::kill(child, SIGKILL);
    if (pidfd.valid()) follow(pidfd, output.read, errors.read, outcome, SteadyClock::now() + kToDie, max_bytes);
  }
  reap(child, outcome);
  return outcome;
}

}  // namespace neuron::host
