#include "agent/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "agent/base/parse.h"

extern char** environ;

namespace neuron {
namespace {

using std::chrono::steady_clock;

struct Pipe {
  Fd read_end;  // does not block
  Fd write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(error_from_errno(errno, "pipe for a child process"));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

int milliseconds_until(SteadyTime until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 1'000'000));
}

// Spawned, not forked: a fork copies the page tables of a process that may be large.
Result<pid_t> spawn(const std::vector<std::string>& words, int out, int err) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  ::sigaddset(&signals, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int failure = ::posix_spawn(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return fail(error_from_errno(failure, words[0]));
  return pid;
}

int in_child(const std::function<int(int)>& body, int output, int errors) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPIPE, SIGTERM, SIGINT, SIGHUP}) {
    std::signal(number, SIG_DFL);
  }
  const Fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (nothing.valid()) ::dup2(nothing.get(), STDIN_FILENO);
  ::dup2(errors, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  return body(output);
}

// Reads the available bytes and closes `fd` at its end. Drops bytes beyond the bound, so that no writer blocks; then
// false.
bool drain(Fd& fd, std::string& into, std::size_t max_bytes) {
  std::array<char, 16384> buffer;  // NOLINT: read() fills it
  for (bool fits = true;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || (got < 0 && errno != EAGAIN)) fd.reset();
    if (got <= 0) return fits;
    const std::size_t room = max_bytes - into.size();
    fits = fits && static_cast<std::size_t>(got) <= room;
    into.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
    if (!fits) return false;
  }
}

// Reads the child's output until the child has ended, even if other processes hold its pipes; only then `exited`.
ChildOutcome::End follow(const Child& child, Fd& output, Fd& errors, ChildOutcome& outcome, SteadyTime until,
                         std::size_t max_bytes) {
  for (;;) {
    std::array<pollfd, 3> fds = {{{child.handle(), POLLIN, 0}, {output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), milliseconds_until(until));
    if (ready < 0 && errno != EINTR) return ChildOutcome::End::out_of_time;
    if (output.valid() && !drain(output, outcome.output, max_bytes)) return ChildOutcome::End::cut;
    if (errors.valid()) static_cast<void>(drain(errors, outcome.errors, max_bytes));
    const bool closed = !output.valid() && !errors.valid();
    if (child.handle() >= 0 ? fds[0].revents != 0 : closed) return ChildOutcome::End::exited;
    if (steady_clock::now() >= until) return ChildOutcome::End::out_of_time;
  }
}

// `start` is given the ends that the child writes to.
template <typename Start>
Result<ChildOutcome> run_bounded(const Start& start, std::chrono::milliseconds budget, std::size_t max_bytes) {
  const SteadyTime until = steady_clock::now() + budget;
  TRY_ASSIGN(Pipe out, make_pipe());
  TRY_ASSIGN(Pipe err, make_pipe());
  TRY_ASSIGN(const pid_t pid, start(out.write_end.get(), err.write_end.get()));
  Child child(pid);
  out.write_end.reset();
  err.write_end.reset();
  ChildOutcome outcome;
  outcome.end = follow(child, out.read_end, err.read_end, outcome, until, max_bytes);
  if (outcome.end != ChildOutcome::End::exited) return outcome;
  const auto status = child.wait(until);
  if (!status) return fail(ErrorCode::internal, "a child process was lost");
  if (*status < 0) outcome.end = ChildOutcome::End::killed;
  outcome.status = std::abs(*status);
  return outcome;
}

}  // namespace

Child::Child(pid_t pid) : pid_(pid), handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

std::optional<int> Child::wait(SteadyTime until) {
  pollfd end{handle_.get(), POLLIN, 0};
  for (int ready = 0; handle_.valid() && ready <= 0;) {
    const int left = milliseconds_until(until);
    ready = ::poll(&end, 1, left);
    if ((ready == 0 && left == 0) || (ready < 0 && errno != EINTR)) return std::nullopt;
  }
  int status = 0;
  pid_t reaped = -1;
  while ((reaped = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  if (reaped != pid_) return std::nullopt;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

void Child::kill() {
  constexpr std::chrono::milliseconds kToDie{1000};  // only a driver can hold a killed process longer
  if (reaped_) return;
  ::kill(pid_, SIGKILL);
  static_cast<void>(wait(steady_clock::now() + kToDie));
}

Result<pid_t> fork_child(const std::function<int()>& body) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(error_from_errno(errno, "fork"));
  if (pid > 0) return pid;
  // The parent may have died before it asked.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) ::_exit(1);
  ::_exit(body());
}

Result<ChildOutcome> run_program(const std::vector<std::string>& words, std::chrono::milliseconds budget,
                                 std::size_t max_bytes) {
  return run_bounded([&](int out, int err) { return spawn(words, out, err); }, budget, max_bytes);
}

Result<ChildOutcome> run_in_child(const std::function<int(int)>& body, std::chrono::milliseconds budget,
                                  std::size_t max_bytes) {
  const auto start = [&](int out, int err) { return fork_child([&] { return in_child(body, out, err); }); };
  return run_bounded(start, budget, max_bytes);
}

Result<BackgroundProgram> start_program(const std::vector<std::string>& words) {
  TRY_ASSIGN(Pipe pipe, make_pipe());
  const auto body = [&](int errors) {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    const std::string why = error_from_errno(errno, words[0]).message + '\n';
    static_cast<void>(write_all(errors, why, "standard error"));
    return 127;
  };
  const int end = pipe.write_end.get();
  TRY_ASSIGN(const pid_t pid, fork_child([&] { return in_child([&](int) { return body(end); }, end, end); }));
  auto child = std::make_unique<Child>(pid);
  return BackgroundProgram{std::move(child), std::move(pipe.read_end)};
}

Result<std::string> find_helper(const std::string& name) {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) return fail(error_from_errno(errno, "/proc/self/exe"));
  const std::string path(self.data(), static_cast<std::size_t>(length));
  const std::string program = path.substr(0, path.rfind('/')) + "/../" + name;
  if (::access(program.c_str(), X_OK) != 0) {
    return fail(ErrorCode::not_found, "the helper program is missing: " + program);
  }
  return program;
}

std::string complaint_of(const ChildOutcome& outcome) {
  const std::string_view text = trim(outcome.errors);
  const std::size_t end = text.rfind('\n');
  return printable(end == std::string_view::npos ? text : text.substr(end + 1), 400);
}

}  // namespace neuron
