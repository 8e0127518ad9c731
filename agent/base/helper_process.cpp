#include "agent/base/helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>

#include "agent/base/fd.h"
#include "agent/base/parse.h"

extern char** environ;

namespace neuron {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMaxErrorBytes = 4096;

struct Pipe {
  Fd read_end;
  Fd write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(error_from_errno(errno, "pipe for a helper program"));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// A started helper; killed when it goes out of scope before wait() saw its end.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid), handle_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    constexpr std::chrono::milliseconds kToDie{1000};  // only a driver can hold a killed process longer
    if (ended_) return;
    ::kill(pid_, SIGKILL);
    static_cast<void>(wait(steady_clock::now() + kToDie));
  }
  // The exit status, or minus the signal that ended it; nullopt when it still runs at that time.
  [[nodiscard]] std::optional<int> wait(steady_clock::time_point until) {
    pollfd end{handle_.get(), POLLIN, 0};
    for (int ready = 0; handle_.valid() && ready <= 0;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
      if (left <= 0) return std::nullopt;
      ready = ::poll(&end, 1, static_cast<int>(left));
      if (ready < 0 && errno != EINTR) return std::nullopt;
    }
    int status = 0;
    ended_ = ::waitpid(pid_, &status, 0) == pid_;
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

 private:
  pid_t pid_;
  Fd handle_;
  bool ended_ = false;
};

Result<pid_t> start(const std::vector<std::string>& words, int out, int err) {
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

// Appends what is there, no more than `limit` in all; false at the end of the stream, on an error and at the limit.
bool drain(int fd, std::string& text, std::size_t limit) {
  std::array<char, 16384> buffer;  // NOLINT: read() fills it
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  text.append(buffer.data(), static_cast<std::size_t>(count));
  const bool fits = text.size() <= limit;
  if (!fits) text.resize(limit);
  return count > 0 && fits;
}

// Both streams to their ends, or until one bound is reached; false when the time came first.
bool listen(int out, int err, HelperAnswer& answer, std::size_t max_bytes, steady_clock::time_point until) {
  std::array<pollfd, 2> streams = {{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
    if (left <= 0) return false;
    const int ready = ::poll(streams.data(), streams.size(), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (streams[0].revents != 0 && !drain(out, answer.output, max_bytes + 1)) streams[0].fd = -1;
    answer.is_cut = answer.output.size() > max_bytes;
    if (answer.is_cut) return true;
    if (streams[1].revents != 0 && !drain(err, answer.errors, kMaxErrorBytes)) streams[1].fd = -1;
  }
  return true;
}

}  // namespace

Result<std::string> find_helper(const std::string& name) {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) return fail(error_from_errno(errno, "/proc/self/exe"));
  const std::string path(self.data(), static_cast<std::size_t>(length));
  const std::string program = path.substr(0, path.rfind('/')) + "/../libexec/neuron-node-agent/" + name;
  if (::access(program.c_str(), X_OK) != 0) {
    return fail(ErrorCode::not_found, "the helper program is missing: " + program);
  }
  return program;
}

Result<HelperAnswer> run_helper(const std::vector<std::string>& words, std::chrono::milliseconds budget,
                                std::size_t max_bytes) {
  const auto until = steady_clock::now() + budget;
  TRY_ASSIGN(Pipe out, make_pipe());
  TRY_ASSIGN(Pipe err, make_pipe());
  TRY_ASSIGN(const pid_t pid, start(words, out.write_end.get(), err.write_end.get()));
  Child child(pid);
  out.write_end.reset();
  err.write_end.reset();
  HelperAnswer answer;
  if (!listen(out.read_end.get(), err.read_end.get(), answer, max_bytes, until)) {
    return fail(ErrorCode::deadline_exceeded, words[0] + " did not answer in time");
  }
  if (answer.is_cut) return answer;
  const auto status = child.wait(until);
  if (!status) return fail(ErrorCode::deadline_exceeded, words[0] + " did not end in time");
  answer.status = *status;
  return answer;
}

std::string complaint_of(const HelperAnswer& answer) {
  const std::string_view text = trim(answer.errors);
  const std::size_t end = text.rfind('\n');
  return printable(end == std::string_view::npos ? text : text.substr(end + 1), 400);
}

}  // namespace neuron
