#include "tools/pods/pod_query.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "tools/pods/pod_lines.h"

extern char** environ;

namespace neuron::pods {
namespace {

using std::chrono::steady_clock;

constexpr std::size_t kMaxComplaintBytes = 4096;

struct Pipe {
  Fd read_end;
  Fd write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail(error_from_errno(errno, "pipe for neuron-pods"));
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// A started neuron-pods; killed and reaped when it goes out of scope.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

 private:
  pid_t pid_;
};

// With stdout and stderr into the pipes, stdin empty, and the signals as they are by default.
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
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int failure = ::posix_spawn(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) return fail(error_from_errno(failure, words[0]));
  return pid;
}

// Appends what is there; false at the end of the stream, on an error, and when `limit` is reached.
bool drain(int fd, std::string& text, std::size_t limit) {
  std::array<char, 16384> buffer;  // NOLINT: read() fills it
  const ssize_t count = ::read(fd, buffer.data(), buffer.size());
  if (count < 0) return errno == EINTR;
  text.append(buffer.data(), static_cast<std::size_t>(count));
  return count > 0 && text.size() <= limit;
}

struct Said {
  std::string out;
  std::string err;
};

// Both streams to their ends; nullopt when the deadline came first.
std::optional<Said> listen(int out, int err, steady_clock::time_point deadline) {
  Said said;
  std::array<pollfd, 2> streams = {{{out, POLLIN, 0}, {err, POLLIN, 0}}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0) return std::nullopt;
    const int ready = ::poll(streams.data(), streams.size(), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return std::nullopt;
    if (ready <= 0) continue;
    if (streams[0].revents != 0 && !drain(out, said.out, kMaxAnswerBytes)) streams[0].fd = -1;
    if (said.out.size() > kMaxAnswerBytes) return said;
    if (streams[1].revents != 0 && !drain(err, said.err, kMaxComplaintBytes)) streams[1].fd = -1;
  }
  return said;
}

// What neuron-pods says itself; gRPC may have logged something before.
std::string last_line(std::string_view text) {
  text = trim(text);
  const std::size_t end = text.rfind('\n');
  return printable(end == std::string_view::npos ? text : text.substr(end + 1), 400);
}

}  // namespace

Result<std::string> find_neuron_pods() {
  std::array<char, 4096> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) return fail(error_from_errno(errno, "/proc/self/exe"));
  const std::string path(self.data(), static_cast<std::size_t>(length));
  const std::string program = path.substr(0, path.rfind('/')) + "/../libexec/neuron-node-agent/neuron-pods";
  if (::access(program.c_str(), X_OK) != 0) {
    return fail(ErrorCode::not_found, "the helper program is missing: " + program);
  }
  return program;
}

Result<std::vector<PodHolding>> query_pods_with(const std::string& program, const std::string& socket,
                                                std::chrono::milliseconds deadline) {
  const auto until = steady_clock::now() + deadline;
  TRY_ASSIGN(Pipe out, make_pipe());
  TRY_ASSIGN(Pipe err, make_pipe());
  const std::vector<std::string> words = {program, socket, std::to_string(deadline.count())};
  TRY_ASSIGN(const pid_t pid, start(words, out.write_end.get(), err.write_end.get()));
  const Child child(pid);
  out.write_end = Fd();
  err.write_end = Fd();
  const auto said = listen(out.read_end.get(), err.read_end.get(), until);
  if (!said) return fail(ErrorCode::deadline_exceeded, "the kubelet did not answer in time (" + socket + ")");
  if (said->out.size() > kMaxAnswerBytes) return fail(ErrorCode::data_corrupt, "neuron-pods: its answer is too long");
  if (!said->out.empty()) return parse_pod_lines(said->out);
  const std::string complaint = last_line(said->err);
  return fail(ErrorCode::unavailable, complaint.empty() ? "neuron-pods ended without an answer" : complaint);
}

Result<std::vector<PodHolding>> query_pods(const std::string& socket, std::chrono::milliseconds deadline) {
  TRY_ASSIGN(const std::string program, find_neuron_pods());
  if (::access(socket.c_str(), R_OK | W_OK) != 0) return fail(error_from_errno(errno, socket));
  return query_pods_with(program, socket, deadline);
}

}  // namespace neuron::pods
